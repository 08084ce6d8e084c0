import { once } from 'node:events'
import { mkdir, open, rm, type FileHandle } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { dialListener, type KnownListener } from '../../../sdk/node/network/dial-listener.js'
import type { ListeningSocket, Loopback } from '../../../sdk/node/network/socket-table.js'
import { splice } from '../../../sdk/node/network/splice.js'
import { ignored } from '../../../sdk/index.js'

const MOST_CONNECTIONS = 512

/** The dependencies of the relays. */
export interface RelaysDeps {
  /** A folder of the daemon's own, which no turn sees. */
  readonly folder: string
  readonly dial: (id: string, port: number, host: Loopback) => Promise<Socket>
  readonly listening: () => Promise<readonly { readonly id: string; readonly sockets: readonly ListeningSocket[] }[]>
}

interface Relay {
  readonly path: string
  readonly server: Server
  readonly inodes: readonly string[]
  readonly sockets: Set<Socket>
}

/** Local sockets of the daemon, each of which leads to one server in the network of a conversation. */
export class Relays {
  readonly #deps: RelaysDeps
  /** By conversation, then by port. */
  readonly #relays = new Map<string, Map<number, Promise<Relay>>>()
  #folder: Promise<FileHandle> | undefined
  #made = 0

  constructor(deps: RelaysDeps) {
    this.#deps = deps
  }

  /** The path of the local socket that leads to a server; the one to an earlier server at its port closes. */
  async open(id: string, server: KnownListener): Promise<string> {
    const ports = this.#relays.get(id) ?? new Map<number, Promise<Relay>>()
    this.#relays.set(id, ports)
    const before = ports.get(server.port)
    const made = this.#next(before, id, server)
    ports.set(server.port, made)
    made.catch(() => ports.get(server.port) === made && ports.delete(server.port))
    return (await made).path
  }

  /** Closes the relays of a conversation. */
  forget(id: string): void {
    for (const relay of this.#relays.get(id)?.values() ?? []) relay.then(end, () => {})
    this.#relays.delete(id)
  }

  async close(): Promise<void> {
    for (const id of [...this.#relays.keys()]) this.forget(id)
    await (await this.#folder?.catch(() => undefined))?.close()
  }

  async #next(before: Promise<Relay> | undefined, id: string, server: KnownListener): Promise<Relay> {
    const known = await before?.catch(() => undefined)
    if (known && String(known.inodes) === String(server.inodes)) return known
    if (known) end(known)
    return this.#listen(id, server)
  }

  async #listen(id: string, known: KnownListener): Promise<Relay> {
    this.#folder ??= emptyFolder(this.#deps.folder)
    // The path through the open folder is short, as the path of a socket has to be.
    const path = `/proc/${process.pid}/fd/${(await this.#folder).fd}/${++this.#made}`
    const sockets = new Set<Socket>()
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, near => {
      near.on('error', ignored('its close follows'))
      if (sockets.size >= MOST_CONNECTIONS) return void near.destroy()
      sockets.add(near.once('close', () => sockets.delete(near)))
      this.#reach(id, known).then(
        far => (far && !near.destroyed ? splice(near, far, { idleMs: 0 }) : void (near.destroy(), far?.destroy())),
        () => near.destroy(),
      )
    })
    server.listen(path).unref()
    await once(server, 'listening')
    return { path, server, inodes: known.inodes, sockets }
  }

  #reach(id: string, known: KnownListener): Promise<Socket | undefined> {
    const { dial, listening } = this.#deps
    const reach = () =>
      dialListener(known, {
        sockets: async () => (await listening()).find(network => network.id === id)?.sockets ?? [],
        connect: ({ host, port }) => dial(id, port, host),
      })
    // The helper inside may have gone to rest at this moment: the next one is a new one.
    return reach().catch(reach)
  }
}

const end = ({ server, sockets }: Relay): void => {
  server.close()
  for (const socket of sockets) socket.destroy()
}

/** A folder without what a killed daemon left in it, open. */
const emptyFolder = async (path: string): Promise<FileHandle> => {
  await rm(path, { recursive: true, force: true })
  await mkdir(path, { recursive: true, mode: 0o700 })
  return open(path, 'r')
}
