import { isIP } from 'node:net'
import { refuse } from '../../sdk/index.js'
import type { CapabilityRecord } from '../capabilities/contract.js'
import { checkDiskConfig, type DiskConfig, type DiskProvider, type DiskTarget, type WebdavTarget } from './contract.js'

/** The kind of the connections that are shares. */
export const DISK_KIND = 'disk'

/** The fields of a share whose values are secrets. */
export const DISK_SECRETS = ['password', 'privateKey'] as const

/** The secret values of a share. */
export interface DiskSecrets {
  readonly password?: string
  readonly privateKey?: string
}

/** A configured share; its configuration has no secret value. */
export interface DiskEntry {
  readonly id: string
  readonly config: DiskConfig
  /** The names of its secret fields that hold a value. */
  readonly secrets: readonly string[]
}

const HOST = /^[a-z0-9]([a-z0-9._-]{0,253}[a-z0-9])?$/i
const USER = /^[a-z0-9_][a-z0-9_.@+\\-]{0,255}$/i
const DOMAIN = /^[\p{L}\p{N}]([\p{L}\p{N}._-]*[\p{L}\p{N}])?$/u
const CONTROL = /[\0-\x1f\x7f]/
const HOST_KEY = /^[a-z][a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}( .*)?$/

/** The share of a stored connection; undefined: it is none that this version understands. */
export const diskOf = ({ id, config, secrets }: CapabilityRecord): DiskEntry | undefined => {
  const shown = Object.fromEntries(Object.entries(config).filter(([field]) => !isSecret(field)))
  const checked = checkDiskConfig(shown)
  return checked.success ? { id, config: checked.data, secrets } : undefined
}

const isSecret = (field: string): boolean => (DISK_SECRETS as readonly string[]).includes(field)

/** The configuration that fields describe; refuses fields of another form. */
export const diskConfigOf = (fields: { readonly [field: string]: unknown }): DiskConfig => {
  const checked = checkDiskConfig(fields)
  if (checked.success) return checked.data
  const [first] = checked.errors
  const field = first!.path.replace(/^\$input\.?/, '')
  const path = field === '' ? 'config' : `config.${field}`
  const expected = field === '' ? 'the fields of one provider: smb, nfs, sshfs or webdav' : first!.expected
  const found = field === '' || isSecret(field) ? 'other ones' : (JSON.stringify(fields[field]) ?? 'nothing')
  return refuse('invalid', `${path}: expected ${expected}, found ${found.slice(0, 100)}`, {
    errors: [{ path, expected }],
  })
}

/** The secret fields that a provider knows. */
export const diskSecretFields = (provider: unknown): readonly string[] =>
  provider === 'sshfs' ? ['privateKey', 'password'] : provider === 'nfs' ? [] : ['password']

/** Where a share is, without a credential. */
export const sourceOf = (target: DiskTarget): string => {
  switch (target.provider) {
    case 'smb':
      return `//${target.server}/${[target.share, ...shareSegments(target.path)].join('/')}`
    case 'nfs':
      return `${bracketed(target.server)}:${target.export}`
    case 'sshfs':
      return `${target.user}@${bracketed(target.host)}:${target.path}`
    case 'webdav':
      return target.url.replace(/^(https?:\/\/)[^/@]*@/, '$1')
  }
}

/** An address of version 6 in brackets, as it stands before a colon. */
export const bracketed = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host)

/** The segments of a path below a share. */
export const shareSegments = (path: string | undefined): string[] => (path ?? '').split('/').filter(Boolean)

const DEFAULT_PORTS: { readonly [provider in DiskProvider]: number } = { smb: 445, nfs: 2049, sshfs: 22, webdav: 80 }

/** The server of a target, as an address that names can be looked up by. */
export const diskServer = (target: DiskTarget): URL => {
  if (target.provider === 'webdav') return new URL(target.url)
  const name = target.provider === 'sshfs' ? target.host : target.server
  const port = ('port' in target ? target.port : undefined) ?? DEFAULT_PORTS[target.provider]
  return new URL(`http://${bracketed(name)}:${port}`)
}

/** The address of a folder in the form in which every program reads it alike. */
export const webdavAddress = ({ url }: Pick<WebdavTarget, 'url'>): string => new URL(url).href

/** The port of a target's server. */
export const portOf = (target: DiskTarget): number => {
  const { port, protocol } = diskServer(target)
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}

/** Refuses a target that no mount can use, by the name of its field and without a secret value. */
export const checkTarget = (target: DiskTarget, secrets: DiskSecrets): void => {
  for (const [field, value] of Object.entries(target))
    if (typeof value === 'string' && !isSecret(field) && CONTROL.test(value))
      wrong(field, 'a text without control characters', value)
  if (secrets.password !== undefined && CONTROL.test(secrets.password))
    wrongSecret('password', 'one line of text', 'one with control characters')
  switch (target.provider) {
    case 'smb':
      checkHost('server', target.server)
      if (/[/\\:*?"<>|,]/.test(target.share)) wrong('share', 'the name of a share, without slashes', target.share)
      // `mount.cifs` writes the path and the domain between its options.
      if (target.path?.includes(',') || shareSegments(target.path).some(part => part === '..' || part === '.'))
        wrong('path', 'a path without commas, . and ..', target.path!)
      if (target.domain !== undefined && !DOMAIN.test(target.domain))
        wrong('domain', 'the name of a domain', target.domain)
      if (target.username !== undefined && !USER.test(target.username))
        wrong('username', 'the name of a user', target.username)
      if (secrets.password !== undefined && target.username === undefined)
        wrongSecret('username', 'the user of the password', 'none')
      return
    case 'nfs':
      return checkHost('server', target.server)
    case 'sshfs':
      checkHost('host', target.host)
      if (!USER.test(target.user)) wrong('user', 'the name of a user of the server', target.user)
      if (target.hostKey !== undefined && !HOST_KEY.test(target.hostKey))
        wrong('hostKey', 'a key such as ssh-ed25519 AAAA…', target.hostKey)
      if (secrets.privateKey !== undefined && secrets.password !== undefined)
        wrongSecret('password', 'none, for there is a privateKey', 'one')
      return
    case 'webdav': {
      const url = URL.parse(target.url)
      if (!url) return wrong('url', 'an http or https address', target.url)
      if (url.username || url.password)
        wrongSecret('url', 'an address without a name and password in it', 'one with them')
      if (url.search || url.hash) wrong('url', 'an address without ? and #', target.url)
      // A program that mounts reads the address itself, so it may have one meaning only.
      if (/[\\"<>^`{|}\s]/.test(target.url)) wrong('url', 'an address with its other characters encoded', target.url)
      if (!isPlainHost(url.hostname)) wrong('url', 'an address whose host is a name or an address', target.url)
      if (secrets.password !== undefined && target.username === undefined)
        wrongSecret('username', 'the user of the password', 'none')
    }
  }
}

const isPlainHost = (hostname: string): boolean => {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(host) !== 0 || HOST.test(host)
}

const checkHost = (field: string, host: string): void => {
  if (isIP(host) === 0 && !HOST.test(host)) wrong(field, 'the name or the address of a server, without a port', host)
}

/** Refuses a field by its name; `found` is its value, or what is wrong with a value that nobody may read. */
const wrong = (path: string, expected: string, found: string): never => {
  const value = JSON.stringify(found.slice(0, 100).toWellFormed())
  return refuse('unprocessable', `${path}: expected ${expected}, found ${value}`, {
    errors: [{ path, expected, value }],
  })
}

const wrongSecret = (path: string, expected: string, found: string): never =>
  refuse('unprocessable', `${path}: expected ${expected}, found ${found}`, { errors: [{ path, expected }] })

/** Refuses an ssh share that has no way to sign in. */
export const checkSignIn = ({ config: { provider } }: DiskEntry, secrets: DiskSecrets): void => {
  if (provider === 'sshfs' && secrets.privateKey === undefined && secrets.password === undefined)
    wrongSecret('privateKey', 'a private key or a password to sign in with', 'neither')
}
