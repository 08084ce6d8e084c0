import { realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { refuse } from '../../refusal.js'
import { isClosedName } from '../files/closed-names.js'
import { contains } from '../files/paths.js'

/** A server with repositories. */
export interface ServerAddress {
  readonly kind: 'https' | 'http' | 'ssh' | 'git'
  /** The address for git: without a password, and for http(s) without a user name. */
  readonly url: string
  readonly host: string
  readonly port: number
  readonly user?: string
  readonly password?: string
}
/** A repository of the same workspace. */
export interface LocalAddress {
  readonly kind: 'local'
  /** Its real path. */
  readonly url: string
}
/** The address of a remote. */
export type RemoteAddress = ServerAddress | LocalAddress

const PORTS = { https: 443, http: 80, ssh: 22, git: 9418 } as const
const SCP = /^(?:([^@:/\s]+)@)?([A-Za-z0-9][A-Za-z0-9._-]+):(?!\/\/)([^\s].*)$/
const EXPECTED = 'an https, http, ssh or git address, host:path, or a path of the workspace'

/** One normal form of a host: a name, or an address of either version. What git or ssh could read otherwise is none. */
const HOST = /^[a-z0-9_]([a-z0-9._-]{0,253}[a-z0-9_.])?$|^[0-9a-f:.]+$/i
/** A user name that no program takes for a part of the address. */
const USER = /^[A-Za-z0-9_.~+-][A-Za-z0-9_.~+-]*(@[A-Za-z0-9_.+-]+)?$/
/** Control characters of a path, which git decodes. */
const HIDDEN = /%(?:[01][0-9a-f]|7f)/i

const isSafePart = (text: string): boolean => !text.startsWith('-') && !/[\x00-\x20\x7f]/.test(text)

/** Refuses an address without repeating it, because it may contain a password. */
const unfit = (field: string, found: string): never =>
  refuse('invalid', `${field}: expected ${EXPECTED}, found ${found}`, {
    errors: [{ path: field, expected: EXPECTED }],
  })

const isUser = (text: string): boolean => !text.startsWith('-') && USER.test(text)

const localOf = (workspace: string, from: string, path: string, field: string): LocalAddress => {
  let real: string | undefined
  try {
    real = realpathSync(join(path.startsWith('/') ? '/' : from, path))
  } catch {
    real = undefined
  }
  const inside = real !== undefined && contains(workspace, real)
  if (!inside || isClosedName((relative(workspace, real!) || '.').split('/')))
    refuse('unprocessable', `${field}: expected a repository in the workspace, found a path that is none`)
  return { kind: 'local', url: real! }
}

/**
 * Parses the address of a remote; refuses unsupported transports, helper programs, and paths outside the
 * workspace. `from` is the base of a relative path.
 */
export const remoteAddress = (
  text: string,
  { workspace, from, field }: { readonly workspace: string; readonly from: string; readonly field: string },
): RemoteAddress => {
  if (!text.isWellFormed() || /[\x00-\x1f\x7f]/.test(text)) return unfit(field, 'one with control characters')
  if (text.startsWith('-')) return unfit(field, 'one that begins with -')
  if (/^[\w.+-]*::/.test(text)) return unfit(field, 'one of a helper program')
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(text)?.[1]?.toLowerCase()
  if (scheme === 'file') {
    const path = URL.canParse(text) && new URL(text).hostname === '' ? fileURLToPath(text) : undefined
    return path === undefined
      ? unfit(field, 'a file address of another machine')
      : localOf(workspace, from, path, field)
  }
  if (scheme === undefined) {
    const [, user, host = '', path = ''] = SCP.exec(text) ?? []
    if (host === '') return localOf(workspace, from, text, field)
    if ((user !== undefined && !isUser(user)) || !HOST.test(host) || /^-|@\[/.test(path))
      return unfit(field, 'host:path with unusual characters')
    return { kind: 'ssh', url: text, host: host.toLowerCase(), port: PORTS.ssh, ...(user !== undefined && { user }) }
  }
  if (!(scheme in PORTS)) return unfit(field, `one of ${scheme.slice(0, 40)}`)
  const kind = scheme as keyof typeof PORTS
  if (!URL.canParse(text)) return unfit(field, 'one that cannot be read')
  const url = new URL(text)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (!HOST.test(host)) return unfit(field, 'one without a host that is a name or an address')
  if (url.hash || (url.search && kind !== 'https' && kind !== 'http')) return unfit(field, 'one with ? or #')
  if (HIDDEN.test(url.pathname)) return unfit(field, 'one with encoded control characters')
  const [user, password] = [url.username, url.password].map(decoded)
  // Git decodes the whole address of an ssh server before it looks for the host in it.
  if (user !== '' && !(kind === 'ssh' || kind === 'git' ? isUser(user!) : isSafePart(user!)))
    return unfit(field, 'one with an unusual user name')
  url.password = ''
  url.username = kind === 'ssh' ? user! : ''
  return {
    kind,
    url: url.href,
    host: host.toLowerCase(),
    port: Number(url.port) || PORTS[kind],
    ...(user !== '' && { user: user! }),
    ...(password !== '' && { password: password! }),
  }
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
