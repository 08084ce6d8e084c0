import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Larger than the port's accept queue, so that a new connection is never the oldest. */
const UNKNOWN = 2_048
const UNKNOWN_PER_ADDRESS = 256
const KNOWN_PER_CREDENTIAL = 128
const LOOPBACK = /^(::ffff:)?127\.|^::1$/

/**
 * Limits the connections without a valid credential: 2,048 in all, 256 from each address that is not loopback. Accepts
 * every new connection and closes the oldest, busy or not, since a client can fake being busy but not being new.
 *
 * A connection with a valid credential does not count, up to 128 for each credential. Further ones, and those of an
 * expired or revoked credential, count as connections without one.
 */
export class Connections {
  readonly #unknown = new Set<Socket>()
  readonly #unknownFrom = new Map<string, Set<Socket>>()
  readonly #known = new Map<string, Set<Socket>>()
  readonly #credentials = new WeakMap<Socket, string>()

  /** Tracks every connection of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const address = socket.remoteAddress ?? ''
      socket.once('close', () => this.#leave(socket, address))
      this.#enter(socket, address)
    })
  }

  /** Excludes the connection of a request with a valid credential from the limits. */
  keep(socket: Socket, credential: string): void {
    if (this.#credentials.get(socket) === credential || socket.destroyed) return
    const kept = this.#known.get(credential)?.size ?? 0
    if (kept >= KNOWN_PER_CREDENTIAL) return
    this.#leave(socket, socket.remoteAddress ?? '')
    add(this.#known, credential, socket)
    this.#credentials.set(socket, credential)
  }

  /** Applies the limits again to the connections of a credential that has ended. */
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

/** Deletes the socket at once: its close event comes later, and the place is needed now. */
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
