import { isIPv4, isIPv6 } from 'node:net'

const LABEL = '[a-z0-9_-]{1,63}'
const NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`)
const MOST = 253
/** The system reads a name whose last part is a number as an IPv4 address. */
const NUMBER_LAST = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/
const MAPPED = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/
/** A host and a port as they stand in an address; the host as it is written. */
const AUTHORITY = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/
const BRACKETS = /^\[(.*)\]$/

const normalAddress = (text: string): string | undefined => {
  if (!isIPv6(text) || text.includes('%')) return undefined
  const bare = URL.parse(`http://[${text}]`)?.hostname.slice(1, -1)
  const [, high, low] = MAPPED.exec(bare ?? '')?.map(group => Number.parseInt(group, 16)) ?? []
  return high === undefined || low === undefined ? bare : [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/**
 * The one form of a host: a name of letters, digits, `-`, `_` and `.` in small letters, or an address in its shortest
 * spelling without brackets. Undefined for everything else, so that no two readers of a host differ.
 */
export const normalHost = (text: string): string | undefined => {
  const [, bracketed] = BRACKETS.exec(text) ?? []
  if (bracketed !== undefined || text.includes(':')) return normalAddress(bracketed ?? text)
  const name = text.toLowerCase().replace(/\.$/, '')
  if (name.length > MOST || !NAME.test(name)) return undefined
  if (!NUMBER_LAST.test(name)) return name
  const address = URL.parse(`http://${name}`)?.hostname ?? ''
  return isIPv4(address) ? address : undefined
}

/** A host, in its normal form, and a port as they stand in an address; undefined when they are none. */
export const hostAndPort = (
  authority: string,
  usual?: number,
): { readonly host: string; readonly port: number } | undefined => {
  const [, host = '', digits] = AUTHORITY.exec(authority) ?? []
  const normal = normalHost(host)
  const port = digits === undefined ? usual : Number(digits)
  return normal === undefined || port === undefined || port < 1 || port > 65_535 ? undefined : { host: normal, port }
}

/** Where a program asked to be connected. */
export interface Target {
  /** A name or an address, in its normal form. */
  readonly host: string
  readonly port: number
}

/** How a target is written. */
export const written = ({ host, port }: Target): string => `${host.includes(':') ? `[${host}]` : host}:${port}`
