import { isIP } from 'node:net'

const CIDR = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/

/** A network as numbers: its first address without the bits of hosts, and how many bits name the network. */
interface Network {
  readonly version: 4 | 6
  readonly first: bigint
  readonly length: number
}

const numberOf = (address: string, version: 4 | 6): bigint => {
  if (version === 4) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  const [head = '', tail] = address.split('::')
  const parts = (text: string): string[] =>
    text === '' ? [] : text.split(':').flatMap(part => (part.includes('.') ? hexOf(part) : [part]))
  const [front, back] = [parts(head), parts(tail ?? '')]
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length
  const all = [...front, ...Array.from({ length: zeros }, () => '0'), ...back]
  return all.reduce((sum, part) => sum * 65_536n + BigInt(`0x${part}`), 0n)
}

const hexOf = (dotted: string): string[] => {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  return [(a * 256 + b).toString(16), (c * 256 + d).toString(16)]
}

const networkOf = (text: string): Network | undefined => {
  const [, address = '', given] = CIDR.exec(text) ?? []
  const version = isIP(address)
  if (version !== 4 && version !== 6) return undefined
  const most = version === 4 ? 32 : 128
  const length = given === undefined ? most : Number(given)
  if (length > most) return undefined
  const hosts = BigInt(most - length)
  return { version, length, first: (numberOf(address, version) >> hosts) << hosts }
}

const covers = (outer: Network, inner: Network): boolean => {
  if (outer.version !== inner.version || outer.length > inner.length) return false
  const hosts = BigInt((outer.version === 4 ? 32 : 128) - outer.length)
  return outer.first >> hosts === inner.first >> hosts
}

/** Whether a text is an address with the length of its network, such as `10.0.0.0/8`; without one it is a host's. */
export const isCidr = (text: string): boolean => networkOf(text) !== undefined

/** The first pair of networks, one of each list, of which one contains the other. */
export const overlapping = (
  some: readonly string[],
  others: readonly string[],
): { one: string; other: string } | undefined => {
  for (const one of some)
    for (const other of others) {
      const [first, second] = [networkOf(one), networkOf(other)]
      if (first && second && (covers(first, second) || covers(second, first))) return { one, other }
    }
  return undefined
}

/** What two lists of networks have in common: of each overlapping pair the smaller one. */
export const common = (some: readonly string[], others: readonly string[]): string[] => {
  const found = some.flatMap(one =>
    others.flatMap(other => {
      const [first, second] = [networkOf(one), networkOf(other)]
      if (!first || !second) return []
      if (covers(second, first)) return [one]
      return covers(first, second) ? [other] : []
    }),
  )
  return [...new Set(found)]
}

/** An IPv4 network as its address and mask; undefined for an IPv6 one. */
export const maskedNetwork = (cidr: string): { address: string; mask: string } | undefined => {
  const network = networkOf(cidr)
  if (network?.version !== 4) return undefined
  const dotted = (value: bigint): string => [24n, 16n, 8n, 0n].map(by => String((value >> by) & 255n)).join('.')
  const hosts = BigInt(32 - network.length)
  return { address: dotted(network.first), mask: dotted((0xffffffffn >> hosts) << hosts) }
}

/** Whether everything goes into these networks: a default route, or both of its halves. */
export const isEverything = (routes: readonly string[]): boolean =>
  routes.includes('0.0.0.0/0')
  || routes.includes('::/0')
  || (routes.includes('0.0.0.0/1') && routes.includes('128.0.0.0/1'))
