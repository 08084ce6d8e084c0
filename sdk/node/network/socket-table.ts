import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { familyOf } from '../programs/family.js'

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

/** The listening sockets in the text of a socket table. */
export const parseSocketTable = (text: string): ListeningSocket[] =>
  text
    .split('\n')
    .slice(1)
    .flatMap(line => {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
      if (state !== LISTENS) return []
      const [address = '', port = ''] = local.split(':')
      return [{ port: Number.parseInt(port, 16), address: addressOf(address), inode }]
    })

/** The listening sockets of the network of a process. */
export const listeningSockets = (pid: number | 'self'): ListeningSocket[] =>
  ['tcp', 'tcp6'].flatMap(table => {
    try {
      return parseSocketTable(readFileSync(`/proc/${pid}/net/${table}`, 'utf8'))
    } catch {
      // It has ended, or the machine has no IPv6.
      return []
    }
  })

/** The sockets that a process holds, by inode. */
export const socketsHeldBy = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        return []
      }
    })
  } catch {
    return []
  }
}

/** The sockets of a process and its descendants on which they listen. */
export const socketsOfFamily = (leader: number): ListeningSocket[] => {
  const tables = new Map<string, Map<string, ListeningSocket>>()
  const found = new Map<string, ListeningSocket>()
  for (const pid of familyOf(leader)) {
    const sockets = socketsHeldBy(pid)
    if (sockets.length === 0) continue
    let network: string
    try {
      network = readlinkSync(`/proc/${pid}/ns/net`)
    } catch {
      continue
    }
    const table = tables.get(network) ?? new Map(listeningSockets(pid).map(socket => [socket.inode, socket]))
    tables.set(network, table)
    for (const inode of sockets) {
      const listening = table.get(inode)
      if (listening) found.set(inode, listening)
    }
  }
  return [...found.values()]
}

/** Where a process and its descendants listen for connections from this machine, lowest port first. */
export const listeningOf = (leader: number): Listening[] => {
  const found = new Map<number, Listening>()
  for (const { port, address } of socketsOfFamily(leader)) {
    const [host] = loopbacksOf(address)
    if (host && found.get(port)?.host !== '127.0.0.1') found.set(port, { port, host })
  }
  return [...found.values()].sort((a, b) => a.port - b.port)
}
