import type { Host } from '../../sdk/index.js'
import { answeringScheme } from '../../sdk/node/network/answers-http.js'
import type { PortEntry } from '../ports/contract.js'
import type { PanelServer } from './contract.js'

type ServersHost = Pick<Host, 'call' | 'serves'>

/** Where something listens on this machine. */
export interface PanelListener extends Pick<PortEntry, 'port' | 'host'> {
  readonly elsewhere?: true
  /** The folder that it runs in, from the workspace root. */
  readonly cwd?: string
  readonly session?: string
}

const KEPT_MS = 2_000
/** Who waits for a server looks again sooner. */
const SILENT_MS = 200
const MOST_KEPT = 1_000

interface Probe {
  readonly at: number
  readonly scheme: Promise<'http' | 'https' | undefined>
  silent?: true
}

/** Asks what listens on this machine whether it speaks HTTP; answers are kept for 2 s. */
export class PanelServers {
  readonly #host: ServersHost
  readonly #probes = new Map<string, Probe>()

  constructor(host: ServersHost) {
    this.#host = host
  }

  /** What listens with a folder in the workspace; nothing without group ports. */
  async listening(): Promise<PanelListener[]> {
    if (!(await this.#host.serves('ports.scan'))) return []
    const { ports } = await this.#host.call('ports.scan')
    return ports.flatMap(({ port, host, cwd, session, conversationId }) =>
      // What a conversation serves in its own network is none of this machine.
      conversationId !== undefined || cwd === undefined || cwd.startsWith('/')
        ? []
        : [{ port, host, cwd, ...(session !== undefined && { session }) }],
    )
  }

  /** Those that answer, by port. */
  async answering(repo: string, listeners: readonly PanelListener[]): Promise<PanelServer[]> {
    const sorted = listeners.toSorted((one, other) => one.port - other.port)
    const found = await Promise.all(sorted.map(async one => ({ one, scheme: await this.#probe(one) })))
    return found.flatMap(({ one: { port, cwd, session }, scheme }) => {
      const dir = cwd === undefined || cwd === repo ? undefined : repo === '.' ? cwd : cwd.slice(repo.length + 1)
      return scheme === undefined
        ? []
        : [{ url: `${scheme}://localhost:${port}`, ...(dir !== undefined && { dir }), ...(session && { session }) }]
    })
  }

  #probe({ host, port, elsewhere }: PanelListener): Probe['scheme'] {
    if (elsewhere) return answeringScheme({ host, port, elsewhere })
    const key = `${host} ${port}`
    const now = performance.now()
    const known = this.#probes.get(key)
    if (known && now - known.at < (known.silent ? SILENT_MS : KEPT_MS)) return known.scheme
    if (this.#probes.size >= MOST_KEPT) this.#probes.delete(this.#probes.keys().next().value!)
    const probe: Probe = { at: now, scheme: answeringScheme({ host, port }) }
    void probe.scheme.then(scheme => {
      if (scheme === undefined) probe.silent = true
    })
    this.#probes.delete(key)
    this.#probes.set(key, probe)
    return probe.scheme
  }
}
