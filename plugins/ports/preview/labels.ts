import { refuse } from '../../../sdk/index.js'
import type { SocketOfFamily } from '../../../sdk/node/network/listening-sockets.js'
import { loopbacksOf, takersAt, type Loopback } from '../../../sdk/node/network/socket-table.js'
import type { SystemSockets } from '../scan/system-sockets.js'
import { randomName } from './names.js'
import type { LabelRecord, PreviewStore } from './store.js'

/** Labels kept at most; the one that was not registered for the longest time gives way. */
const MOST = 500

/** Where a registered program listens. */
export interface ProgramListener {
  readonly host: Loopback
  readonly port: number
  readonly inodes: readonly string[]
  /** It is in another network than the daemon. */
  readonly elsewhere?: true
}

/** The dependencies of the labels. */
export interface LabelsDeps {
  readonly store: PreviewStore
  readonly machine: () => Promise<SystemSockets>
  /** The daemon's own ports. */
  readonly own: () => Promise<ReadonlySet<number>>
  readonly cut: (label: LabelRecord) => void
}

/** The programs that groups registered under labels. */
export class Labels {
  readonly #deps: LabelsDeps

  constructor(deps: LabelsDeps) {
    this.#deps = deps
  }

  at(label: string): LabelRecord | undefined {
    return this.#deps.store.state.labels.find(each => each.label === label)
  }

  /** Registers a program under a label, whose name stays the same. */
  async register(label: string, target: { pid: number; port?: number }): Promise<LabelRecord> {
    const { store, cut } = this.#deps
    const machine = await this.#deps.machine()
    const began = await machine.began(target.pid)
    if (began === undefined) return refuse('not-found', `there is no process ${target.pid} to show`)
    const known = this.at(label)
    const program = { ...target, began, boot: machine.boot }
    if (known?.program && JSON.stringify(known.program) === JSON.stringify(program)) return known
    if (known?.program) cut(known)
    const record: LabelRecord = { label, name: known?.name ?? randomName(), usedAt: Date.now(), program }
    await store.change(({ labels }) => ({
      labels: [...labels.filter(each => each.label !== label), record].slice(-MOST),
    }))
    return record
  }

  async unregister(label: string): Promise<boolean> {
    const known = this.at(label)
    if (!known?.program) return false
    const { program: _, ...idle } = known
    await this.#deps.store.change(({ labels }) => ({
      labels: labels.map(each => (each.label === label ? idle : each)),
    }))
    this.#deps.cut(known)
    return true
  }

  /** Where the program of a label listens; `running` tells whether it lives. */
  async listener({ program }: LabelRecord): Promise<{ running: boolean; found?: ProgramListener }> {
    const machine = await this.#deps.machine()
    if (!program || program.boot !== machine.boot || (await machine.began(program.pid)) !== program.began)
      return { running: false }
    const [sockets, own] = await Promise.all([machine.family(program.pid), this.#deps.own()])
    const found = reachable(sockets).filter(({ port }) => !own.has(port))
    const chosen = found.find(({ port }) => port === program.port) ?? found[0]
    return { running: true, ...(chosen && { found: chosen }) }
  }
}

/** The ports on which sockets are reached over loopback, the lowest first. */
const reachable = (sockets: readonly SocketOfFamily[]): ProgramListener[] =>
  [...Map.groupBy(sockets, ({ port }) => port)]
    .flatMap(([port, group]) => {
      const hosts = group.flatMap(({ address }) => loopbacksOf(address))
      const host = hosts.includes('127.0.0.1') ? '127.0.0.1' : hosts[0]
      const inodes = host ? takersAt(group, { host, port }).map(({ inode }) => inode) : []
      const elsewhere = group.every(socket => socket.elsewhere)
      return host ? [{ host, port, inodes, ...(elsewhere && { elsewhere }) }] : []
    })
    .sort((a, b) => a.port - b.port)
