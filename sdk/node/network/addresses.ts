import { BlockList, isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'

/** What an address of the network is, as far as asking it for somebody else goes. */
export type AddressKind = 'public' | 'private' | 'loopback' | 'link-local' | 'metadata' | 'unusable'

/** An address the daemon itself listens on. */
export interface Listener {
  readonly host: string
  readonly port: number
}

/** Which addresses of the machine's own network a request made for somebody else may go to. */
export interface MachineReach {
  /** Loopback and private addresses too. */
  readonly near: boolean
  /** The daemon's own listeners: never asked. */
  readonly listeners: readonly Listener[]
  /** Another machine said where to go: not to this one. */
  readonly away?: boolean
}

/** The first kind whose ranges hold an address is its kind. */
const RANGES: readonly (readonly [kind: AddressKind, ranges: string])[] = [
  // Where clouds tell a machine its own secrets, beside the link-local ones.
  [
    'metadata',
    '169.254.169.254/32 169.254.170.2/32 169.254.170.23/32 100.100.100.200/32 192.0.0.192/32 168.63.129.16/32 '
      + 'fd00:ec2::/32 fd20:ce::254/128',
  ],
  ['link-local', '169.254.0.0/16 fe80::/10'],
  ['loopback', '127.0.0.0/8 0.0.0.0/8 ::1/128 ::/128'],
  ['private', '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 192.0.0.0/24 198.18.0.0/15 fc00::/7 fec0::/10'],
  // Nobody answers there, or it is not told who: many at once, reserved, tunnels that hide their far end.
  ['unusable', '224.0.0.0/4 240.0.0.0/4 ff00::/8 2001::/32 64:ff9b:1::/48'],
]

const LISTS = RANGES.map(([kind, ranges]) => {
  const list = new BlockList()
  for (const range of ranges.split(' ')) {
    const [net = '', prefix] = range.split('/')
    list.addSubnet(net, Number(prefix), net.includes(':') ? 'ipv6' : 'ipv4')
  }
  return [kind, list] as const
})

/** The networks of IPv4 that are not public, but for a machine's own loopback. */
export const NEAR_NETWORKS: readonly string[] = RANGES.flatMap(([, ranges]) => ranges.split(' ')).filter(
  range => !range.includes(':') && range !== '127.0.0.0/8',
)

/** The eight groups of an IPv6 address. */
const groupsOf = (address: string): number[] => {
  const { hostname } = new URL(`http://[${address}]`)
  const [head = '', tail] = hostname.slice(1, -1).split('::')
  const numbers = (text: string) => (text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16)))
  const [first, last] = [numbers(head), tail === undefined ? [] : numbers(tail)]
  return [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last]
}

const dotted = (high: number, low: number): string => [high >> 8, high & 255, low >> 8, low & 255].join('.')

/** The first groups of IPv6 addresses that only carry an IPv4 one: mapped, translated, of NAT64. */
const CARRIERS = ['0:0:0:0:0:ffff', '0:0:0:0:ffff:0', '64:ff9b:0:0:0:0']
/** The oldest form of the same, which loopback and the unspecified address share. */
const OLDEST = '0:0:0:0:0:0'

/**
 * The address in its one plain form: no brackets, no zone, and the IPv4 address where an IPv6 one only carries it.
 * Undefined when it is no address.
 */
export const plainAddress = (address: string): string | undefined => {
  const bare = address.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '')
  if (isIPv4(bare)) return bare
  if (!isIPv6(bare)) return undefined
  const groups = groupsOf(bare)
  const hex = groups.map(group => group.toString(16))
  const [first, high, low] = [hex.slice(0, 6).join(':'), groups[6]!, groups[7]!]
  if (CARRIERS.includes(first) || (first === OLDEST && (high > 0 || low > 1))) return dotted(high, low)
  return groups[0] === 0x2002 ? dotted(groups[1]!, groups[2]!) : hex.join(':')
}

/** What an address is; a text that is none is unusable. */
export const addressKind = (address: string): AddressKind => {
  const plain = plainAddress(address)
  if (plain === undefined) return 'unusable'
  const family = isIPv4(plain) ? 'ipv4' : 'ipv6'
  return LISTS.find(([, list]) => list.check(plain, family))?.[0] ?? 'public'
}

/** The addresses of this machine, in their plain form. */
export const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap(all => all?.flatMap(({ address }) => plainAddress(address) ?? []) ?? [])

/** Whether an address, in its plain form, is one of this machine's. */
export const isHere = (plain: string): boolean => addressKind(plain) === 'loopback' || ownAddresses().includes(plain)

/** Why an address must not be asked for somebody else; undefined: it may be. */
export const barred = (address: string, port: number, { near, listeners, away }: MachineReach): string | undefined => {
  const plain = plainAddress(address)
  const kind = plain === undefined ? 'unusable' : addressKind(plain)
  const own = plain !== undefined && listeners.some(listener => listener.port === port) && isHere(plain)
  if (own) return 'it is this sandbox itself'
  if (away && plain !== undefined && isHere(plain)) return 'it is this machine, and another one leads there'
  switch (kind) {
    case 'metadata':
      return 'it is where a machine is told its own secrets'
    case 'link-local':
      return 'it is a link-local address'
    case 'unusable':
      return 'it is no address that can be asked'
    case 'loopback':
    case 'private':
      return near ? undefined : `it is a ${kind} address, which this turn may not reach`
    case 'public':
      return undefined
  }
}
