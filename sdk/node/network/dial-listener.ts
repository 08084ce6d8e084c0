import type { Socket } from 'node:net'
import { takersAt, type ListeningSocket, type Listening } from './socket-table.js'

/** A server on a loopback address: its port, and the sockets that are its own. */
export interface KnownListener extends Listening {
  readonly inodes: readonly string[]
}

/** How to reach the network of a server. */
export interface DialedNetwork {
  readonly sockets: () => Promise<readonly ListeningSocket[]>
  readonly connect: (listening: Listening) => Promise<Socket>
}

/**
 * Connects to a server; undefined when a socket of another program could take the connection. That is checked before
 * and after, because a program can take a port between the two: it gets no byte.
 */
export const dialListener = async (
  { host, port, inodes }: KnownListener,
  { sockets, connect }: DialedNetwork,
): Promise<Socket | undefined> => {
  const isIts = async () => {
    const takers = takersAt(await sockets(), { host, port })
    return takers.length > 0 && takers.every(({ inode }) => inodes.includes(inode))
  }
  if (!(await isIts())) return undefined
  const socket = await connect({ host, port })
  if (await isIts().catch(() => false)) return socket
  socket.destroy()
  return undefined
}
