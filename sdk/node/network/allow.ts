import { BlockList, isIP, isIPv6 } from 'node:net'
import { addressKind, plainAddress } from './addresses.js'
import { normalHost } from './host-form.js'

/** A port of the machine's own loopback. */
export interface AllowedLocal {
  readonly kind: 'local'
  readonly port: number
}

/** A host by name; `below` also names every name below it, and then not the name itself. */
export interface AllowedName {
  readonly kind: 'name'
  readonly name: string
  readonly below: boolean
  readonly port?: number
}

/** Addresses: one, or a whole network. */
export interface AllowedAddresses {
  readonly kind: 'addresses'
  /** Whether an address, in its plain form, is one of them. */
  readonly holds: (plain: string) => boolean
  readonly port?: number
}

/** What a maintainer allowed conversations to reach. */
export type Allowed = AllowedLocal | AllowedName | AllowedAddresses

const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`)
/** `[address or network]:port`, or what holds at most one colon with what stands before it. */
const SPLIT = /^(?:\[([^\]]+)\]|([^[\]:]+))(?::(\d{1,5}))?$/
const METADATA_NAMES = new Set(['metadata.google.internal', 'metadata.goog', 'metadata'])

const FORM = 'host[:port] with a name, *.name, an address or a network such as 10.1.0.0/16, or localhost:port'

const SECRETS = 'a host other than where a machine is told its own secrets, which no conversation reaches'

/** What is wrong with an entry: what was expected in its place, as the end of a sentence. */
export interface NotAllowed {
  readonly expected: string
}

/** A name as it is compared: in small letters, without the dot of the root. */
export const plainName = (host: string): string => host.toLowerCase().replace(/\.$/, '')

/** Whether a name is one where clouds tell a machine its own secrets. */
export const isMetadataName = (name: string): boolean => METADATA_NAMES.has(name)

/** The entry of `networkAllow` as it is gone by, or what was expected instead. */
export const parseAllowed = (text: string): Allowed | NotAllowed => {
  const trimmed = plainName(text.trim())
  const bare = trimmed.includes('/') ? isIPv6(trimmed.slice(0, trimmed.indexOf('/'))) : isIPv6(trimmed)
  const [, bracketed, plain, digits] = bare ? ['', trimmed] : (SPLIT.exec(trimmed) ?? [])
  const host = bracketed ?? plain
  const port = digits === undefined ? undefined : Number(digits)
  if (host === undefined || (port !== undefined && (port < 1 || port > 65_535))) return { expected: FORM }
  const [net = '', prefix, ...more] = host.split('/')
  if (isIP(net) && more.length === 0) return addresses(net, prefix, port)
  if (prefix !== undefined || bracketed !== undefined) return { expected: FORM }
  if (host === 'localhost') return local(port)
  const name = host.replace(/^\*\./, '')
  if (!NAME.test(name) || name.length > 253 || normalHost(name) !== name || isIP(name)) return { expected: FORM }
  if (name.endsWith('.localhost')) return { expected: 'localhost:port for a port of this machine' }
  if (isMetadataName(name)) return { expected: SECRETS }
  return { kind: 'name', name, below: name !== host, ...(port !== undefined && { port }) }
}

const local = (port: number | undefined): Allowed | NotAllowed =>
  port === undefined ? { expected: 'localhost with a port, such as localhost:5432' } : { kind: 'local', port }

const addresses = (net: string, prefix: string | undefined, port: number | undefined): Allowed | NotAllowed => {
  const plain = plainAddress(net)!
  const most = isIPv6(plain) ? 128 : 32
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= (isIPv6(net) ? 128 : 32)))
    return { expected: FORM }
  // Of an address that only carries another one the network is that of the other.
  const length = prefix === undefined ? most : isIPv6(net) && most === 32 ? Number(prefix) - 96 : Number(prefix)
  if (length < 0) return { expected: FORM }
  const kind = addressKind(plain)
  if (kind === 'metadata' && length === most) return { expected: SECRETS }
  if (kind === 'loopback') return local(length === most ? port : undefined)
  if (kind === 'unusable') return { expected: 'an address that can be asked' }
  const family = isIPv6(plain) ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  list.addSubnet(plain, length, family)
  return {
    kind: 'addresses',
    holds: address => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'),
    ...(port !== undefined && { port }),
  }
}

/** The entries that hold, without those that do not parse. */
export const allowedOf = (entries: readonly string[]): Allowed[] =>
  entries.flatMap(text => {
    const parsed = parseAllowed(text)
    return 'expected' in parsed ? [] : [parsed]
  })
