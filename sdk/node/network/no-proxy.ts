import { BlockList, isIP, isIPv6 } from 'node:net'
import { hostAndPort, normalHost, type Target } from './host-form.js'

type Exempt = (target: Target) => boolean

const NEVER: Exempt = () => false

/** A list of networks, `10.0.0.0/8` or `fd00::/8`. */
const ofNetwork = (net: string, prefix: string): Exempt => {
  const family = isIPv6(net) ? 'ipv6' : 'ipv4'
  if (!isIP(net) || !/^\d{1,3}$/.test(prefix) || Number(prefix) > (family === 'ipv6' ? 128 : 32)) return NEVER
  const list = new BlockList()
  list.addSubnet(net, Number(prefix), family)
  return ({ host }) => isIP(host) > 0 && list.check(host, isIPv6(host) ? 'ipv6' : 'ipv4')
}

const exemptBy = (entry: string): Exempt => {
  if (entry === '*') return () => true
  const [net = '', prefix, ...more] = entry.split('/')
  if (prefix !== undefined) return more.length === 0 ? ofNetwork(net.replace(/^\[(.*)\]$/, '$1'), prefix) : NEVER
  const bare = entry.replace(/^\*?\./, '')
  const named = isIPv6(bare) ? { host: normalHost(bare)!, port: 0 } : hostAndPort(bare, 1)
  if (!named) return NEVER
  const port = isIPv6(bare) || !/:\d+$/.test(bare) ? undefined : named.port
  const { host } = named
  return to =>
    (port === undefined || port === to.port)
    && (to.host === host || (isIP(host) === 0 && isIP(to.host) === 0 && to.host.endsWith(`.${host}`)))
}

/**
 * Whether a list such as that of NO_PROXY names a target: `*`, names with all names below them (also written `.name` or
 * `*.name`), addresses and networks of literal addresses; each but a network may end in a port.
 */
export const exemptions = (list: string): Exempt => {
  const all = list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(exemptBy)
  return target => all.some(exempt => exempt(target))
}
