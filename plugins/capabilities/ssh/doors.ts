import { once } from 'node:events'
import { mkdir, open, realpath, rm, type FileHandle } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { Refusal, type Host } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { SENTENCES } from '../../../sdk/node/network/failure-words.js'
import { splice } from '../../../sdk/node/network/splice.js'
import type { Entries } from '../records/entries.js'
import type { OpenEntry } from '../records/kinds.js'
import { sshAddressOf } from './handshake.js'
import { lendKey } from './keys.js'
import { loginOf, secretOf, sshServerOf } from './server.js'
import { shownServer } from './words.js'

/** The names of the sockets in the folder of a connection. */
export const RELAY = 'relay'
export const AGENT = 'agent'

const MOST_CONNECTIONS = 64
const CONNECT_MS = 20_000

/** What the programs of turns reach a server through. */
interface Door {
  readonly servers: readonly Server[]
  /** The folder; its path can be longer than the path of a socket may be. */
  readonly folder: FileHandle
  readonly sockets: Set<Socket>
}

type Deps = Pick<Host, 'call' | 'place' | 'signal' | 'log'>

/**
 * Two sockets for each connected server, which turns see: one is connected to the server, and one signs with the
 * connection's key. So turns reach this server alone, at a checked address, and never hold the key.
 */
export class SshDoors {
  readonly #host: Deps
  readonly #entries: () => Entries
  readonly #doors = new Map<string, Promise<Door>>()

  constructor(host: Deps, entries: () => Entries) {
    this.#host = host
    this.#entries = entries
    host.signal.addEventListener('abort', () => {
      for (const id of this.#doors.keys()) void this.close(id)
    })
  }

  /** The folder of a connection: its sockets, and the host keys of its server. */
  folder(id: string): string {
    return join(this.#host.place.folder, 'ssh', id)
  }

  /** Opens the sockets of a connection; returns the real path of their folder. */
  async open(id: string): Promise<string> {
    let door = this.#doors.get(id)
    if (!door) {
      door = this.#open(id)
      this.#doors.set(id, door)
      door.catch(() => this.#doors.delete(id))
    }
    await door
    return realpath(this.folder(id))
  }

  /** Whether a program of a turn is connected to the server now. */
  async busy(id: string): Promise<boolean> {
    return ((await this.#doors.get(id)?.catch(() => undefined))?.sockets.size ?? 0) > 0
  }

  /** Ends the connections of turns to a server, and closes the sockets. */
  async close(id: string): Promise<void> {
    const opening = this.#doors.get(id)
    this.#doors.delete(id)
    const door = await opening?.catch(() => undefined)
    if (!door) return
    for (const socket of door.sockets) socket.destroy()
    await Promise.all(door.servers.map(server => new Promise(closed => server.close(closed))))
    await door.folder.close()
  }

  async #open(id: string): Promise<Door> {
    const path = this.folder(id)
    await mkdir(path, { recursive: true, mode: 0o700 })
    const folder = await open(path, 'r')
    const sockets = new Set<Socket>()
    const servers: Server[] = []
    try {
      servers.push(await this.#listen(folder, path, RELAY, sockets, socket => this.#relay(id, socket)))
      servers.push(await this.#listen(folder, path, AGENT, sockets, socket => this.#sign(id, socket)))
    } catch (error) {
      for (const server of servers) server.close()
      await folder.close()
      throw error
    }
    return { servers, folder, sockets }
  }

  async #listen(
    folder: FileHandle,
    path: string,
    name: string,
    sockets: Set<Socket>,
    serve: (socket: Socket) => Promise<void>,
  ): Promise<Server> {
    await rm(join(path, name), { force: true })
    const server = createServer({ pauseOnConnect: true }, socket => {
      if (sockets.size >= MOST_CONNECTIONS) return void socket.destroy()
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      socket.on('error', () => socket.destroy())
      serve(socket).catch((error: unknown) => {
        this.#host.log.warn('serving a server over ssh to a turn failed', { error: String(error) })
        socket.destroy()
      })
    })
    server.listen({ path: `/proc/self/fd/${folder.fd}/${name}` }).unref()
    await once(server, 'listening')
    return server
  }

  async #entry(id: string): Promise<OpenEntry | string> {
    const found = await this.#entries().find(id)
    if (found?.kind !== 'ssh') return `${id} is not connected any more`
    const { entry, problem } = await this.#entries().open(found)
    return problem ? problem.detail! : entry
  }

  /** Connects a program to the server: the first line that it reads is empty, or says why it is not connected. */
  async #relay(id: string, socket: Socket): Promise<void> {
    const entry = await this.#entry(id)
    const far = typeof entry === 'string' ? entry : await this.#dial(entry)
    if (typeof far === 'string') return void socket.end(`${far}\n`)
    if (socket.destroyed) return void far.destroy()
    socket.write('\n')
    splice(socket, far)
  }

  async #dial(entry: OpenEntry): Promise<Socket | string> {
    const server = sshServerOf(entry)
    const signal = AbortSignal.any([this.#host.signal, AbortSignal.timeout(CONNECT_MS)])
    try {
      const far = connect({ host: await sshAddressOf(this.#host, server, signal), port: server.port, noDelay: true })
      far.on('error', () => far.destroy())
      await once(far, 'connect', { signal }).catch((error: unknown) => {
        far.destroy()
        throw error
      })
      return far
    } catch (error) {
      if (error instanceof Refusal) return error.message
      const code = signal.aborted ? 'ETIMEDOUT' : codeOf(error)
      return `${shownServer(server)} is not reached: ${SENTENCES[code ?? ''] ?? code ?? 'the connection failed'}`
    }
  }

  async #sign(id: string, socket: Socket): Promise<void> {
    const entry = await this.#entry(id)
    if (typeof entry === 'string' || loginOf(entry) !== 'key') return void socket.destroy()
    await lendKey(socket, secretOf(entry).value)
  }
}
