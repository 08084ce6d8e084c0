import type { Server, Socket } from 'node:net'
import { Refusal, refuse } from '../../refusal.js'
import { codeOf } from '../files/paths.js'
import type { Env } from '../programs/list-env.js'
import type { EnteredNetwork } from '../wall/spec.js'
import type { Authority } from './authority.js'
import type { BoundTraffic } from './bound-traffic.js'
import { Names } from './names.js'
import { NetworkNamespace } from './namespace.js'
import type { Target } from './host-form.js'
import { connectChecked, type DialHow, type NetworkRules } from './policy.js'
import { EgressProxy } from './proxy.js'
import { Slirp } from './slirp.js'
import type { ListeningSocket, Loopback } from './socket-table.js'
import { splice } from './splice.js'
import { ignored } from '../../ignored.js'

/** Where the proxy of the daemon is in every network. */
const PROXY_PORT = 18_999
/** Where what else the daemon serves is. */
const SERVICE_PORT = 18_998
/** Where commands of a turn call the daemon. */
export const DAEMON_PORT = 18_997
const OWN_PORTS = new Set([PROXY_PORT, SERVICE_PORT, DAEMON_PORT])
const MOST_CONNECTIONS = 512
const AGAIN_MS = 60_000
const LOOPBACKS = ['127.0.0.1', '::1'] as const
const SELF = 'localhost,127.0.0.1,::1'

const http = `http://127.0.0.1:${PROXY_PORT}`
const socks = `socks5h://127.0.0.1:${PROXY_PORT}`

/** What tells programs their way out. */
const VARIABLES: Env = {
  http_proxy: http,
  https_proxy: http,
  HTTP_PROXY: http,
  HTTPS_PROXY: http,
  all_proxy: socks,
  ALL_PROXY: socks,
  no_proxy: SELF,
  NO_PROXY: SELF,
  NODE_USE_ENV_PROXY: '1',
}

/** What a network asks of its conversation. */
export interface NetworkOwner {
  /** What holds now: asked for every connection. */
  rules(): Promise<NetworkRules>
  /** Told of a target that was not reached, with the sentence the program got. */
  refused(target: Target, sentence: string): void
  /** Told of an allowed local port that a program of the conversation has already. */
  taken(port: number): void
  /** A file in which names of hosts are resolved at an address. */
  resolver(address: string): Promise<string>
  /** The values that are put into requests on their way; left out: none are. */
  bound?(): BoundTraffic | undefined
  /** Who vouches for the proxy where it takes the place of a host. */
  authority?(): Promise<Authority>
  /** A file with every authority that programs are to trust; undefined: those of the system. */
  trusting?(): Promise<string | undefined>
}

/**
 * The network of one conversation: loopback of its own, the proxy of the daemon in it, and the ports of the machine
 * that were allowed.
 */
export class OwnNetwork {
  readonly #namespace: NetworkNamespace
  readonly #proxy: EgressProxy
  readonly #names = new Names()
  readonly #stop = new AbortController()
  readonly #sockets = new Set<Socket>()
  readonly #servers = new Set<Server>()
  readonly #ports = new Map<number, Server[]>()
  /** By port: what takes its connections, and when it is there. */
  readonly #services = new Map<number, { take: (socket: Socket) => void; there: Promise<void>; server?: Server }>()
  #owner: NetworkOwner | undefined
  #slirp: Slirp | undefined
  #slirpFailedAt = -Infinity
  #updating: Promise<void> = Promise.resolve()

  private constructor(namespace: NetworkNamespace) {
    this.#namespace = namespace
    this.#proxy = new EgressProxy((target, how) => this.#dialOut(target, how), {
      bound: () => this.#owner?.bound?.(),
      authority: async () => this.#owner?.authority?.() ?? refuse('unavailable', 'no value is bound to a host'),
    })
  }

  /**
   * Makes one that belongs to nobody yet: it reaches nothing.
   *
   * @throws Where this machine cannot.
   */
  static async make(): Promise<OwnNetwork> {
    const namespace = await NetworkNamespace.make()
    try {
      const network = new OwnNetwork(namespace)
      network.#serve(await namespace.listen(PROXY_PORT), socket => network.#proxy.serve(socket))
      return network
    } catch (error) {
      namespace.close()
      throw error
    }
  }

  /** From here on its ways out are open, by the rules of its owner. */
  async own(owner: NetworkOwner): Promise<void> {
    this.#owner = owner
    await this.update()
  }

  /** What starts a program in it. */
  async enter(): Promise<EnteredNetwork> {
    await this.update()
    const resolver = this.#slirp && !this.#slirp.over ? await this.#owner?.resolver(this.#slirp.resolver) : undefined
    const authorities = await this.#owner?.trusting?.()
    return {
      command: this.#namespace.entering,
      env: VARIABLES,
      inUserNamespace: this.#namespace.inUserNamespace,
      ...(resolver !== undefined && { resolver }),
      ...(authorities !== undefined && { authorities }),
    }
  }

  /**
   * Hands the connections to one port of its loopback to the daemon; answers the address the programs in it use. Who
   * takes a port last has it.
   */
  async serve(take: (socket: Socket) => void, port = SERVICE_PORT): Promise<string> {
    const service = this.#services.get(port) ?? { take, there: this.#listen(port) }
    service.take = take
    this.#services.set(port, service)
    await service.there
    return `http://127.0.0.1:${port}`
  }

  async #listen(port: number): Promise<void> {
    try {
      const server = await this.#namespace.listen(port)
      const service = this.#services.get(port)
      if (!service) return void server.close()
      service.server = server
      this.#serve(server, socket => service.take(socket))
    } catch (error) {
      this.#services.delete(port)
      throw error
    }
  }

  /** Takes a service away: its port is free for programs. */
  withdraw(port: number): void {
    const service = this.#services.get(port)
    this.#services.delete(port)
    void service?.there.then(() => service.server?.close(), ignored('a service that could not be placed is not there'))
  }

  /** The sockets on which its programs listen: without those that the daemon placed in it. */
  listening(): ListeningSocket[] {
    return this.#namespace
      .listening()
      .filter(({ port }) => !OWN_PORTS.has(port) && !this.#ports.has(port) && !this.#services.has(port))
  }

  /** A connection to a port of its loopback. */
  async dial(port: number, host?: Loopback): Promise<Socket> {
    try {
      return await this.#namespace.dial(port, host)
    } catch (error) {
      if (codeOf(error) !== 'ECONNREFUSED') throw error
      return refuse('dependency', `nothing is listening on port ${port} in the network of the conversation`, {
        cause: error,
      })
    }
  }

  /**
   * Follows the rules as they are now: the ports of the machine that are there, and the way out for programs that
   * ignore proxies.
   */
  update(): Promise<void> {
    this.#updating = this.#updating.then(() => this.#update()).catch(ignored('the next use updates it again'))
    return this.#updating
  }

  /** Closes its ways out; the network is gone when the last process in it is. */
  close(): void {
    this.#stop.abort()
    this.#slirp?.end()
    for (const server of this.#servers) server.close()
    for (const socket of this.#sockets) socket.destroy()
    this.#namespace.close()
  }

  async #update(): Promise<void> {
    const owner = this.#owner
    if (!owner || this.#stop.signal.aborted) return
    const { allow, only, listeners } = await owner.rules()
    const own = new Set(listeners.map(({ port }) => port))
    const wanted = new Set(
      allow.flatMap(entry =>
        entry.kind === 'local' && !own.has(entry.port) && !OWN_PORTS.has(entry.port) ? [entry.port] : [],
      ),
    )
    for (const [port, servers] of this.#ports) if (!wanted.has(port)) this.#withdraw(port, servers)
    await this.#route(!only)
    for (const port of wanted) if (!this.#ports.has(port)) await this.#place(port, owner)
  }

  async #place(port: number, owner: NetworkOwner): Promise<void> {
    const servers: Server[] = []
    this.#ports.set(port, servers)
    for (const host of LOOPBACKS) {
      try {
        const server = await this.#namespace.listen(port, host)
        servers.push(server)
        this.#serve(server, socket => void this.#forward(socket, port))
      } catch (error) {
        // Once the program there is gone, the next look finds the port free.
        if (host === LOOPBACKS[0]) this.#ports.delete(port)
        if (codeOf(error) === 'EADDRINUSE') owner.taken(port)
        if (host === LOOPBACKS[0]) return
      }
    }
  }

  #withdraw(port: number, servers: readonly Server[]): void {
    this.#ports.delete(port)
    for (const server of servers) {
      this.#servers.delete(server)
      server.close()
    }
  }

  async #route(wanted: boolean): Promise<void> {
    if (!wanted) {
      this.#slirp?.end()
      this.#slirp = undefined
      return
    }
    if (this.#slirp && !this.#slirp.over) return this.#slirp.keep()
    // Where it cannot be started every command would wait for it.
    if (performance.now() - this.#slirpFailedAt < AGAIN_MS) return
    this.#slirp = await Slirp.start(this.#namespace).catch(() => undefined)
    if (!this.#slirp) this.#slirpFailedAt = performance.now()
    if (this.#stop.signal.aborted) this.#slirp?.end()
  }

  #serve(server: Server, serve: (socket: Socket) => void): void {
    this.#servers.add(server)
    server.on('connection', (socket: Socket) => {
      if (this.#stop.signal.aborted || this.#sockets.size >= MOST_CONNECTIONS) return void socket.destroy()
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      socket.on('error', ignored('its close follows'))
      serve(socket)
    })
  }

  async #forward(socket: Socket, port: number): Promise<void> {
    try {
      const far = await this.#dialOut({ host: 'localhost', port })
      if (socket.destroyed) far.destroy()
      else splice(socket, far)
    } catch {
      socket.resetAndDestroy()
    }
  }

  async #dialOut(target: Target, how?: DialHow): Promise<Socket> {
    const owner = this.#owner ?? refuse('forbidden', 'this network belongs to no conversation')
    try {
      return await connectChecked(target, await owner.rules(), this.#stop.signal, this.#names, how)
    } catch (error) {
      if (error instanceof Refusal && error.reason === 'forbidden') owner.refused(target, error.message)
      throw error
    }
  }
}
