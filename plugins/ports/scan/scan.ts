import { realpath } from 'node:fs/promises'
import type { Host } from '../../../sdk/index.js'
import { loopbacksOf, takersAt, type ListeningSocket, type Loopback } from '../../../sdk/node/network/socket-table.js'
import { attribute, type Attribution, type KnownProcesses } from './attribution.js'
import type { SystemSockets, SeenProcess } from './system-sockets.js'

/** A port of the machine's network, or of the network of a conversation. */
export interface PortPlace {
  readonly port: number
  readonly conversationId?: string
}

/** A name of a place. */
export const placeKey = ({ port, conversationId }: PortPlace): string => `${port} ${conversationId ?? ''}`

/** A socket that takes connections, and the processes that hold it, the oldest first. */
export interface SocketTaker {
  readonly inode: string
  readonly holders: readonly SeenProcess[]
  readonly starter?: string
}

/** A port on which something listens. */
export interface ScannedPort extends PortPlace, Attribution {
  readonly host: Loopback
  readonly forwardable: boolean
  /** The sockets that take connections at this host: almost always one. */
  readonly takers: readonly SocketTaker[]
  /** The oldest of the processes that hold the first of them. */
  readonly holder?: SeenProcess
  /** The daemon itself listens there. */
  readonly own: boolean
}

interface NetworkOfSockets {
  readonly conversationId?: string
  readonly sockets: readonly ListeningSocket[]
}

type ScanHost = Pick<Host, 'call' | 'serves' | 'collect' | 'place'>

/** Callers within this time share a scan. */
const FRESH_MS = 1_000

/** Finds the ports on which something listens, and who listens there. */
export class PortScan {
  readonly #host: ScanHost
  readonly #machine: () => Promise<SystemSockets>
  #last: Promise<readonly ScannedPort[]> | undefined
  #at = -Infinity

  constructor(host: ScanHost, machine: () => Promise<SystemSockets>) {
    this.#host = host
    this.#machine = machine
  }

  /** The ports now, or as they were at most a second ago. */
  shared(): Promise<readonly ScannedPort[]> {
    const now = performance.now()
    if (this.#last && now - this.#at < FRESH_MS) return this.#last
    return this.fresh()
  }

  /** The ports now. */
  fresh(): Promise<readonly ScannedPort[]> {
    const scan = this.#scan()
    this.#at = performance.now()
    this.#last = scan
    scan.catch(() => (this.#last = undefined))
    return scan
  }

  /** The next caller gets a scan that begins after this. */
  outdated(): void {
    this.#last = undefined
  }

  /** The listening sockets alone, of the machine and, where asked for, of each conversation. */
  async sockets(conversations = true): Promise<NetworkOfSockets[]> {
    const machine = await this.#machine()
    const { call, serves } = this.#host
    const [sockets, { networks }] = await Promise.all([
      machine.sockets(),
      conversations && (await serves('networks.listening')) ? call('networks.listening') : { networks: [] },
    ])
    return [{ sockets }, ...networks]
  }

  async #scan(): Promise<ScannedPort[]> {
    const [machine, networks] = await Promise.all([this.#machine(), this.sockets()])
    const inodes = new Set(networks.flatMap(({ sockets }) => sockets.map(({ inode }) => inode)))
    const [{ holders, ancestry }, { listeners, pid }, known] = await Promise.all([
      machine.holders(inodes),
      this.#host.call('kernel.listeners'),
      this.#known(),
    ])
    const own = new Set(listeners.map(({ port }) => port))
    return networks.flatMap(({ conversationId, sockets }) =>
      [...Map.groupBy(sockets, socket => socket.port)].map(([port, group]) => {
        const reached = group.flatMap(({ address }) => loopbacksOf(address))
        const host: Loopback = reached.includes('127.0.0.1') || reached.length === 0 ? '127.0.0.1' : '::1'
        const attributed = (holder: SeenProcess | undefined) =>
          attribute({ ...known, daemon: pid }, holder, holder ? ancestry(holder.pid) : [], conversationId)
        const takers = (reached.length > 0 ? takersAt(group, { host, port }) : group).map(({ inode }): SocketTaker => {
          const holding = holders.get(inode) ?? []
          const { starter } = attributed(holding[0])
          return { inode, holders: holding, ...(starter !== undefined && { starter }) }
        })
        const holder = takers[0]?.holders[0]
        const isOwn =
          (conversationId === undefined && own.has(port))
          || group.some(({ inode }) => holders.get(inode)?.some(each => each.pid === pid))
        return {
          port,
          host,
          forwardable: reached.length > 0,
          takers,
          own: isOwn,
          ...(holder && { holder }),
          ...(conversationId !== undefined && { conversationId }),
          ...attributed(holder),
        }
      }),
    )
  }

  async #known(): Promise<Omit<KnownProcesses, 'daemon'>> {
    const { place, call, serves, collect } = this.#host
    const [workspace, owned, sessions] = await Promise.all([
      realpath(place.workspace),
      collect('system.processes'),
      (await serves('terminals.processes')) ? call('terminals.processes') : { processes: [] },
    ])
    return { workspace, data: place.data, owned: owned.flat(), sessions: sessions.processes }
  }
}
