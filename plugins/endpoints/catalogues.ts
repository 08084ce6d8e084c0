import type { Files } from '../../sdk/index.js'
import { ListFailure, listServer } from '../../sdk/node/models/model-list.js'
import type { EndpointStatus, ModelRow } from './contract.js'
import { fingerprintOf, type ServerEntry } from './entry.js'
import type { ServerAccess } from './store.js'

/** What is known of a server: its last list, and how it stood when it was last asked. */
export interface KnownServer {
  readonly fingerprint: string
  readonly status: EndpointStatus
  readonly detail?: string
  /** The last answer of the server. */
  readonly checkedAt?: number
  readonly models: ModelRow[]
  /** Where its calls are. */
  readonly apiBase?: string
  /** Models that refused a tool when they were tested. */
  readonly withoutTools: string[]
}

/** Parts of the group that catalogues work with. */
export interface CatalogueDeps {
  readonly files: Pick<Files, 'read' | 'write' | 'remove'>
  readonly signal: AbortSignal
  readonly access: (entry: ServerEntry) => Promise<ServerAccess>
  /** Called with the id of a server of which something else is known than before. */
  readonly changed: (id: string) => void
}

/** How long an answer counts, and how long a failure does. */
const FRESH = 60_000
const FAILED_FRESH = 5_000

const fileOf = (id: string): string => `lists/${id}`

/** What servers serve, asked of them and kept on disk. */
export class Catalogues {
  readonly #deps: CatalogueDeps
  readonly #known = new Map<string, KnownServer>()
  readonly #askedAt = new Map<string, number>()
  readonly #asking = new Map<string, Promise<KnownServer>>()

  constructor(deps: CatalogueDeps) {
    this.#deps = deps
  }

  /** What is known of a server without asking it. */
  async known(entry: ServerEntry): Promise<KnownServer> {
    const fingerprint = fingerprintOf(entry)
    const held = this.#known.get(entry.id)
    if (held?.fingerprint === fingerprint) return held
    const stored = await this.#deps.files.read<KnownServer>(fileOf(entry.id))
    const known: KnownServer =
      stored?.fingerprint === fingerprint
        ? stored
        : { fingerprint, status: 'loading', detail: 'its models are being listed', models: [], withoutTools: [] }
    if (held) this.#askedAt.delete(entry.id)
    this.#known.set(entry.id, known)
    return known
  }

  /** Whether the last answer or failure of a server still counts. */
  isFresh({ id }: ServerEntry): boolean {
    const fresh = ['ready', 'empty'].includes(this.#known.get(id)?.status ?? '') ? FRESH : FAILED_FRESH
    return Date.now() - (this.#askedAt.get(id) ?? -Infinity) < fresh
  }

  /** What is known of a server, asked again where that no longer counts. */
  async current(entry: ServerEntry): Promise<KnownServer> {
    const known = await this.known(entry)
    return this.isFresh(entry) ? known : this.ask(entry)
  }

  /** Asks a server for its list; those who ask meanwhile get the same answer. */
  ask(entry: ServerEntry): Promise<KnownServer> {
    const key = `${entry.id} ${fingerprintOf(entry)} ${entry.hasKey}`
    const asking = this.#asking.get(key)
    if (asking) return asking
    const asked = this.#ask(entry).finally(() => this.#asking.delete(key))
    this.#asking.set(key, asked)
    return asked
  }

  /** Has a server asked again at its next read. */
  expire(id: string): void {
    this.#askedAt.delete(id)
  }

  /** Marks a model as one that refuses tools, or that takes them. */
  async mark(entry: ServerEntry, model: string, refuses: boolean): Promise<void> {
    const known = await this.known(entry)
    if (known.withoutTools.includes(model) === refuses) return
    const others = known.withoutTools.filter(each => each !== model)
    await this.#keep(entry.id, { ...known, withoutTools: refuses ? [...others, model] : others })
  }

  async drop(id: string): Promise<void> {
    this.#known.delete(id)
    this.#askedAt.delete(id)
    await this.#deps.files.remove(fileOf(id))
  }

  async #ask(entry: ServerEntry): Promise<KnownServer> {
    const before = await this.known(entry)
    const found = await this.#found(entry, before)
    this.#askedAt.set(entry.id, Date.now())
    const held = this.#known.get(entry.id)
    // It was removed, or is another server by now.
    if (held?.fingerprint !== before.fingerprint) return found
    const known = { ...found, withoutTools: held.withoutTools }
    await this.#keep(entry.id, known)
    return known
  }

  async #found(entry: ServerEntry, before: KnownServer): Promise<KnownServer> {
    const { detail: _detail, ...kept } = before
    const { problem, ...access } = await this.#deps.access(entry)
    if (problem !== undefined) return { ...kept, status: 'unavailable', detail: problem }
    try {
      const { models, apiBase } = await listServer({ ...entry, ...access }, this.#deps.signal)
      const checkedAt = Date.now()
      if (models.length > 0) return { ...kept, status: 'ready', models, apiBase, checkedAt }
      const detail = 'the server answers and lists no model one can talk to: load one there'
      return { ...kept, status: 'empty', detail, apiBase, checkedAt }
    } catch (error) {
      if (!(error instanceof ListFailure)) throw error
      const answered = error.status === undefined ? {} : { checkedAt: Date.now() }
      return { ...kept, ...answered, status: error.kind, detail: error.message }
    }
  }

  async #keep(id: string, known: KnownServer): Promise<void> {
    const before = this.#known.get(id)
    this.#known.set(id, known)
    if (JSON.stringify({ ...before, checkedAt: 0 }) === JSON.stringify({ ...known, checkedAt: 0 })) return
    await this.#deps.files.write(fileOf(id), known)
    this.#deps.changed(id)
  }
}

/** The rows of a server with their marks. */
export const rowsOf = ({ models, withoutTools }: KnownServer): ModelRow[] =>
  models.map(row => ({ ...row, ...(withoutTools.includes(row.id) && { helperOnly: 'no-tool-calls' as const }) }))
