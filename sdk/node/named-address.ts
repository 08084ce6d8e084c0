import { isIP } from 'node:net'
import { addressKind } from './network/addresses.js'
import { isNearName } from './network/policy.js'

/** An address that an answer of a server names, and where it may lead. */
export interface NamedAddress {
  readonly url: URL
  /** Loopback and private addresses too. */
  readonly near: boolean
}

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')

/** Whether an address is one of this machine for itself. */
export const isLoopback = (url: URL): boolean =>
  hostOf(url) === 'localhost' || hostOf(url).endsWith('.localhost') || addressKind(hostOf(url)) === 'loopback'

/** Whether an address looks like one of a private network, as it is written. */
const isNear = (url: URL): boolean =>
  isIP(hostOf(url)) ? addressKind(hostOf(url)) !== 'public' : isNearName(hostOf(url))

/**
 * An address that an answer of a server names, which is outside content: over https, without a name and password in it,
 * and near only on the host of the server itself. Over http only from one loopback address to another. Undefined: it is
 * not asked.
 */
export const namedAddress = (server: URL, named: string): NamedAddress | undefined => {
  const url = URL.parse(named)
  if (!url || url.username || url.password) return undefined
  const secure = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(server) && isLoopback(url))
  return secure ? { url, near: hostOf(url) === hostOf(server) } : undefined
}

/** The same for an address that a browser asks: a public server names none of a private network. */
export const namedPage = (server: URL, named: string): string | undefined => {
  const found = namedAddress(server, named)
  return found && (found.near || isNear(server) || !isNear(found.url)) ? named : undefined
}
