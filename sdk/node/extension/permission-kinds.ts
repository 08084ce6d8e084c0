import { isIPv4, isIPv6 } from 'node:net'
import { addressKind, plainAddress } from '../network/addresses.js'
import { routePattern, type RoutePattern } from '../../route-pattern.js'
import type { Role } from '../../types.js'

/** What a maintainer approves: a key for comparison, and a sentence for people. */
export interface PermissionPower {
  readonly key: string
  readonly text: string
}

/** What one entry of `permissions` allows. */
export type PermissionReach =
  | { readonly kind: 'route'; readonly pattern: RoutePattern }
  | { readonly kind: 'fs:read' | 'fs:write'; readonly glob: string }
  /** A host, `*.name` for every name below it, or `*` for any public host (`any`). */
  | { readonly kind: 'net'; readonly any: boolean; readonly host: string; readonly port?: number }
  | { readonly kind: 'run'; readonly program: string }
  /** A stored key, or with `*` at its end every key that begins so. */
  | { readonly kind: 'secret'; readonly name: string }
  | { readonly kind: 'connection'; readonly card: string }
  /** A kind of events, or with `*` at its end every kind that begins so. */
  | { readonly kind: 'event'; readonly name: string }
  | { readonly kind: 'conversation' }
  | { readonly kind: 'serve'; readonly role: Role; readonly pattern: RoutePattern }

/** One entry of `permissions` that was understood: what it allows, and the power that names it. */
export type PermissionEntry = PermissionReach & { readonly entry: string; readonly power: PermissionPower }

/** An entry that allows nothing: whether its kind is known, and what was expected. */
export interface WrongPermission {
  readonly known: boolean
  readonly expected: string
}

/** The lists of `permissions` in a manifest. */
export type PermissionList = 'sandbox' | 'daemon'

/** A form that entries have, with what it allows. Validation, approval, enforcement and `PERMISSIONS.md` read it. */
export interface PermissionKind {
  readonly kind: PermissionReach['kind']
  /** What stands before the value; empty for routes, which begin with a method. */
  readonly prefix: string
  readonly form: string
  readonly lists: readonly PermissionList[]
  /** What the value must be, as it is said of one that is not. */
  readonly expected: string
  /** A tool of an extension with such an entry is not taken for one that only reads. */
  readonly changes: boolean
  /** What a value allows; undefined: it has not the form. */
  readonly read: (value: string, list: PermissionList) => ReadPermission | undefined
}

type ReadPermission = readonly [reach: PermissionReach, power: PermissionPower]

/** Characters that look like nothing, or like others. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|^\s|\s$/u
const ROLES: readonly Role[] = ['viewer', 'collaborator', 'maintainer', 'owner']
const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
/** A host name; one whose last part is a number would be an address in another spelling. */
const HOST = new RegExp(`^(?:${LABEL}\\.)*(?!\\d+$|0x[0-9a-f]*$)${LABEL}$`)
const STORED_KEY = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/

const globIn = (value: string): string | undefined =>
  !UNSEEN.test(value)
  && !`/${value}/`.includes('/**/**/')
  && value.split('/').every(part => !/^\.{0,2}$/.test(part) && !part.includes('\\') && !/.\*\*|\*\*./.test(part))
    ? value
    : undefined

const hostIn = (host: string): boolean => {
  if (isIPv4(host)) return true
  const [, inner] = /^\[([0-9a-f:]+)\]$/.exec(host) ?? []
  // An IPv6 address that only carries an IPv4 one is written as that.
  if (inner !== undefined)
    return isIPv6(inner) && new URL(`http://${host}`).hostname === host && !isIPv4(plainAddress(inner)!)
  return host.length <= 253 && HOST.test(host.replace(/^\*\./, ''))
}

const netIn = (value: string): ReadPermission | undefined => {
  const [, host = '', digits] = /^(\[[^\]]*\]|[^:]+?)(?::([1-9]\d{0,4}))?$/.exec(value) ?? []
  const port = digits === undefined ? undefined : Number(digits)
  const any = host === '*'
  if ((!any && !hostIn(host)) || (port !== undefined && port > 65_535)) return undefined
  const shown = any ? 'any public host' : host.replace(/^\*\./, 'every host below ')
  return [
    { kind: 'net', any, host: host.replace(/^\[(.*)\]$/, '$1'), ...(port !== undefined && { port }) },
    { key: `net:${value}`, text: `connects to ${shown}${port === undefined ? '' : ` on port ${port}`}` },
  ]
}

/** Whether an entry names an address of this machine or of its network. */
const isNear = (host: string): boolean =>
  host === 'localhost' || (plainAddress(host) !== undefined && addressKind(host) !== 'public')

const beginning = (name: string, what: string): string =>
  name.endsWith('*') ? `every ${what} that begins with ${name.slice(0, -1)}` : `the ${what} ${name}`

const GLOB = 'a path of the workspace, in which * stands for characters of a segment and ** for segments'

/** Every kind of entry, in the order in which `PERMISSIONS.md` describes them. */
export const PERMISSION_KINDS: readonly PermissionKind[] = [
  {
    kind: 'route',
    prefix: '',
    form: 'METHOD /path',
    lists: ['sandbox', 'daemon'],
    expected: 'METHOD /path with a method of GET, POST, PUT, PATCH and DELETE and a path of whole segments',
    changes: false,
    read: (value, list) => {
      const pattern = routePattern(value)
      return (
        pattern && [
          { kind: 'route', pattern },
          list === 'daemon'
            ? { key: `route:${value}`, text: `calls ${value} of the sandbox` }
            : { key: `route-ui:${value}`, text: `its pages call ${value} as the person who looks` },
        ]
      )
    },
  },
  {
    kind: 'fs:read',
    prefix: 'fs:read:',
    form: 'fs:read:GLOB',
    lists: ['sandbox'],
    expected: GLOB,
    changes: false,
    read: value => {
      const glob = globIn(value)
      if (glob === undefined) return undefined
      return [
        { kind: 'fs:read', glob },
        { key: `fs.read:${glob}`, text: `reads the workspace files ${glob}` },
      ]
    },
  },
  {
    kind: 'fs:write',
    prefix: 'fs:write:',
    form: 'fs:write:GLOB',
    lists: ['sandbox'],
    expected: GLOB,
    changes: true,
    read: value => {
      const glob = globIn(value)
      if (glob === undefined) return undefined
      const text = `reads, writes, moves and deletes the workspace files ${glob}`
      return [
        { kind: 'fs:write', glob },
        { key: `fs.write:${glob}`, text },
      ]
    },
  },
  {
    kind: 'net',
    prefix: 'net:',
    form: 'net:HOST[:PORT]',
    lists: ['sandbox'],
    expected: 'a host in small letters, an address such as 10.0.0.1 or [fd00::1], *.NAME or *, and a port to 65535',
    changes: true,
    read: netIn,
  },
  {
    kind: 'run',
    prefix: 'run:',
    form: 'run:PROGRAM',
    lists: ['sandbox'],
    expected: 'the bare name of a program: letters, digits and _ . + -',
    changes: true,
    read: program =>
      /^[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}$/.test(program)
        ? [
            { kind: 'run', program },
            { key: `run:${program}`, text: `runs the program ${program}` },
          ]
        : undefined,
  },
  {
    kind: 'secret',
    prefix: 'secret:',
    form: 'secret:KEY',
    lists: ['sandbox'],
    expected: 'the name of a stored key: a letter or _, then letters, digits and _, then at most one *',
    changes: true,
    read: name =>
      STORED_KEY.test(name.replace(/\*$/, ''))
        ? [
            { kind: 'secret', name },
            { key: `secret:${name}`, text: `uses ${beginning(name, 'stored secret')}` },
          ]
        : undefined,
  },
  {
    kind: 'connection',
    prefix: 'connection:',
    form: 'connection:CARD',
    lists: ['sandbox'],
    expected: 'the id of a card: small letters, digits and -',
    changes: true,
    read: card =>
      /^[a-z0-9][a-z0-9-]{0,59}$/.test(card)
        ? [
            { kind: 'connection', card },
            { key: `connection:${card}`, text: `uses the connections made from the card ${card}` },
          ]
        : undefined,
  },
  {
    kind: 'event',
    prefix: 'event:',
    form: 'event:KIND',
    lists: ['sandbox'],
    expected: 'a kind of events: a letter, then letters, digits and _ . -, with * at the end or alone',
    changes: false,
    read: name =>
      /^(?:[A-Za-z][A-Za-z0-9_.-]{0,199}\*?|\*)$/.test(name)
        ? [
            { kind: 'event', name },
            { key: `event:${name}`, text: `receives ${name === '*' ? 'every event' : beginning(name, 'event')}` },
          ]
        : undefined,
  },
  {
    kind: 'conversation',
    prefix: 'conversation:',
    form: 'conversation:read',
    lists: ['sandbox'],
    expected: 'read',
    changes: false,
    read: value =>
      value === 'read'
        ? [{ kind: 'conversation' }, { key: 'conversation:read', text: 'reads the transcripts of conversations' }]
        : undefined,
  },
  {
    kind: 'serve',
    prefix: 'serve:',
    form: 'serve:ROLE:METHOD /path',
    lists: ['sandbox'],
    expected: 'viewer, collaborator, maintainer or owner, a colon, and METHOD /path of a route of its own',
    changes: false,
    read: value => {
      const at = value.indexOf(':')
      const [role, route] = [ROLES.find(each => each === value.slice(0, Math.max(at, 0))), value.slice(at + 1)]
      const pattern = routePattern(route)
      if (role === undefined || !pattern) return undefined
      const text = `answers ${route} of its own to everybody from role ${role} on`
      return [
        { kind: 'serve', role, pattern },
        { key: `serve:${value}`, text },
      ]
    },
  },
]

/** The forms of the entries of a list, for messages about entries of no known kind. */
const formsOf = (list: PermissionList): string =>
  PERMISSION_KINDS.filter(({ lists }) => lists.includes(list))
    .map(({ form }) => form)
    .join(', ')

/** What an entry of `permissions` allows, or what was expected instead. It is the only reader of such entries. */
export const readPermission = (list: PermissionList, entry: string): PermissionEntry | WrongPermission => {
  const found = PERMISSION_KINDS.find(
    ({ lists, prefix }) => lists.includes(list) && (prefix === '' ? /^[A-Z]+ /.test(entry) : entry.startsWith(prefix)),
  )
  if (!found) return { known: false, expected: list === 'daemon' ? 'METHOD /path' : `one of ${formsOf(list)}` }
  const { prefix, form, expected, read } = found
  const result = read(entry.slice(prefix.length), list)
  if (!result) return { known: true, expected: prefix === '' ? expected : `${form}: ${expected}` }
  const [reach, power] = result
  return { ...reach, entry, power: noting(reach, power) }
}

/** Says of a host that it is near, because a name for it may not. */
const noting = (reach: PermissionReach, power: PermissionPower): PermissionPower =>
  reach.kind === 'net' && isNear(reach.host)
    ? { ...power, text: `${power.text}, of this machine or its private network` }
    : power

/** The entries of a manifest's `permissions`. */
export interface DeclaredEntries {
  readonly sandbox?: readonly string[]
  readonly daemon?: readonly string[]
}

/** What a list of entries allows; an entry that is not understood allows nothing. */
export const permissionsOf = (list: PermissionList, entries: readonly string[] = []): PermissionEntry[] =>
  entries.flatMap(entry => {
    const found = readPermission(list, entry)
    return 'expected' in found ? [] : [found]
  })

/** What the entries of one kind allow. */
export const permissionsOfKind = <K extends PermissionReach['kind']>(
  permissions: readonly PermissionEntry[],
  kind: K,
): Extract<PermissionEntry, { kind: K }>[] =>
  permissions.filter((each): each is Extract<PermissionEntry, { kind: K }> => each.kind === kind)

/** Whether a tool of an extension with these permissions could change something, whatever the tool says of itself. */
export const couldChange = ({ sandbox = [], daemon = [] }: DeclaredEntries): boolean => {
  const changing = new Set(PERMISSION_KINDS.flatMap(({ kind, changes }) => (changes ? [kind] : [])))
  return (
    permissionsOf('sandbox', sandbox).some(({ kind }) => changing.has(kind))
    || permissionsOfKind(permissionsOf('daemon', daemon), 'route').some(({ pattern }) => pattern.method !== 'GET')
  )
}

/** Whether a name is a stored key, which entries `secret:` may name; fields of connections are none. */
export const isStoredKey = (name: string): boolean => STORED_KEY.test(name)
