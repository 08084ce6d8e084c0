import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** More than the system queues at the port, so that a new connection is never the oldest at once. */
const UNKNOWN = 2_048
const UNKNOWN_PER_ADDRESS = 256
const KNOWN_PER_CREDENTIAL = 128
const LOOPBACK = /^(::ffff:)?127\.|^::1$/

/**
 * Bounds the connections on which no valid credential was shown: 2,048, and 256 from one far address. A new one is
 * always accepted and the oldest is closed, busy or not: anybody can pretend to be busy, nobody to be younger.
 *
 * A connection is kept once a request on it had a valid credential: 128 for each credential. Further ones, and those
 * of a credential that has ended, count as if none was shown.
 */
export class Connections {
  readonly #unknown = new Set<Socket>()
  readonly #unknownFrom = new Map<string, Set<Socket>>()
  readonly #known = new Map<string, Set<Socket>>()
  readonly #credentials = new WeakMap<Socket, string>()

  /** Counts every connection of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const address = socket.remoteAddress ?? ''
      socket.once('close', () => this.#leave(socket, address))
      this.#enter(socket, address)
    })
  }

  /** Keeps the connection of a request whose credential is valid. */
  keep(socket: Socket, credential: string): void {
    if (this.#credentials.get(socket) === credential || socket.destroyed) return
    const kept = this.#known.get(credential)?.size ?? 0
    if (kept >= KNOWN_PER_CREDENTIAL) return
    this.#leave(socket, socket.remoteAddress ?? '')
    add(this.#known, credential, socket)
    this.#credentials.set(socket, credential)
  }

  /** Keeps no connection of a credential any longer. */
  end(credential: string): void {
    for (const socket of this.#known.get(credential) ?? []) {
      this.#leave(socket, '')
      this.#enter(socket, socket.remoteAddress ?? '')
    }
  }

  #enter(socket: Socket, address: string): void {
    this.#unknown.add(socket)
    if (this.#unknown.size > UNKNOWN) destroyFirst(this.#unknown)
    if (LOOPBACK.test(address)) return
    const near = add(this.#unknownFrom, address, socket)
    if (near.size > UNKNOWN_PER_ADDRESS) destroyFirst(near)
  }

  #leave(socket: Socket, address: string): void {
    const credential = this.#credentials.get(socket)
    if (credential !== undefined) remove(this.#known, credential, socket)
    this.#credentials.delete(socket)
    this.#unknown.delete(socket)
    remove(this.#unknownFrom, address, socket)
  }
}

/** Its place is free before the connection has closed. */
const destroyFirst = (sockets: Set<Socket>): void => {
  const [first] = sockets
  if (!first) return
  sockets.delete(first)
  first.destroy()
}

const add = (sockets: Map<string, Set<Socket>>, key: string, socket: Socket): Set<Socket> => {
  const found = sockets.get(key) ?? new Set()
  sockets.set(key, found.add(socket))
  return found
}

const remove = (sockets: Map<string, Set<Socket>>, key: string, socket: Socket): void => {
  const found = sockets.get(key)
  if (found?.delete(socket) && found.size === 0) sockets.delete(key)
}
