/** The state of a socket that listens, in the socket tables (proc(5), `/proc/net/tcp`). */
const LISTENS = '0A'
const MAPPED = '0000000000000000FFFF0000'

/** A socket that takes connections. */
export interface ListeningSocket {
  readonly port: number
  /** Its address as text. */
  readonly address: string
  /** Names it: no other socket has the same while it exists. */
  readonly inode: string
}

/** Where a process takes connections from this machine. */
export interface Listening {
  readonly port: number
  readonly host: Loopback
  /** It is in another network than the daemon, which reaches it by a relay alone. */
  readonly elsewhere?: true
}

/** The addresses on which a server of this machine is reached. */
export type Loopback = '127.0.0.1' | '::1'

/** The addresses at which a socket is reached from its own machine; none: only at another address. */
export const loopbacksOf = (address: string): readonly Loopback[] => {
  if (address === '0.0.0.0' || address === '127.0.0.1') return ['127.0.0.1']
  // It takes connections over IPv4 too, unless it refuses them.
  if (address === '::') return ['127.0.0.1', '::1']
  return address === '::1' ? ['::1'] : []
}

/** The listening sockets to which a connection to a port of a loopback address may go. */
export const takersAt = (sockets: readonly ListeningSocket[], { host, port }: Listening): readonly ListeningSocket[] =>
  sockets.filter(socket => socket.port === port && loopbacksOf(socket.address).includes(host))

/** Words of 32 bits are in the byte order of the machine, which is little-endian. */
const bytesOf = (word: string): number[] => [...Buffer.from(word, 'hex')].reverse()

const addressOf = (hex: string): string => {
  if (hex.length === 8) return bytesOf(hex).join('.')
  if (hex.startsWith(MAPPED)) return bytesOf(hex.slice(MAPPED.length)).join('.')
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap(bytesOf)
  const groups = Array.from({ length: 8 }, (_, at) => ((bytes[2 * at]! << 8) | bytes[2 * at + 1]!).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}

/** The socket of a line of a socket table, if it listens. */
export const listeningSocketIn = (line: string): ListeningSocket | undefined => {
  const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
  if (state !== LISTENS) return undefined
  const [address = '', port = ''] = local.split(':')
  return { port: Number.parseInt(port, 16), address: addressOf(address), inode }
}
