import type { Journals, Log } from '../../../sdk/index.js'
import type { AutomationRun } from '../contract.js'

/** A run as it is stored. */
interface Line extends AutomationRun {
  /** The fire, by which a repeated record is recognised. */
  readonly fire: string
}

const MOST = 200
const nameOf = (id: string): string => `runs/${id}`

/** The last 200 runs of each automation. */
export class RunHistory {
  readonly #journal: Pick<Journals, 'append' | 'read' | 'rewrite' | 'remove' | 'list'>
  readonly #log: Pick<Log, 'error'>
  readonly #lines = new Map<string, Line[]>()
  readonly #written = new Map<string, number>()

  constructor(journal: Pick<Journals, 'append' | 'read' | 'rewrite' | 'remove' | 'list'>, log: Pick<Log, 'error'>) {
    this.#journal = journal
    this.#log = log
  }

  async load(): Promise<void> {
    for (const name of await this.#journal.list(nameOf(''))) {
      const lines = await this.#journal.read<Line>(name, 0, { damaged: {} })
      const whole = lines.filter(({ fire }) => typeof fire === 'string')
      this.#lines.set(name.slice(nameOf('').length), whole.slice(-MOST))
      this.#written.set(name.slice(nameOf('').length), lines.length)
    }
  }

  /** Newest first, older than a moment. */
  of(id: string, limit: number, before = Infinity): AutomationRun[] {
    const found = (this.#lines.get(id) ?? []).filter(({ at }) => at < before)
    return found
      .slice(-limit)
      .reverse()
      .map(({ fire: _fire, ...run }) => run)
  }

  /** The errors in a row that end its history, since a moment. */
  failures(id: string, since: number): number {
    const counted = (this.#lines.get(id) ?? []).filter(
      ({ outcome, at }) => at >= since && (outcome === 'error' || outcome === 'completed'),
    )
    const good = counted.findLastIndex(({ outcome }) => outcome === 'completed')
    return counted.length - 1 - good
  }

  /** Why the newest fire that ended well or badly ended badly. */
  lastError(id: string): string | undefined {
    const last = (this.#lines.get(id) ?? []).findLast(({ outcome }) => outcome === 'error' || outcome === 'completed')
    return last?.outcome === 'error' ? (last.detail ?? 'it failed') : undefined
  }

  /** Adds a run, once for each fire; it is durable when this returns. */
  async add(id: string, fire: string, run: AutomationRun): Promise<void> {
    const lines = this.#lines.get(id) ?? []
    if (lines.some(line => line.fire === fire && line.outcome === run.outcome)) return
    // Pages begin at the time of a run, so two of them have different ones.
    const line = { ...run, at: Math.max(run.at, (lines.at(-1)?.at ?? 0) + 1), fire }
    await this.#journal.append(nameOf(id), [line])
    this.#lines.set(id, [...lines, line].slice(-MOST))
    const written = (this.#written.get(id) ?? 0) + 1
    this.#written.set(id, written)
    if (written > 2 * MOST) await this.#compact(id)
  }

  async forget(id: string): Promise<void> {
    this.#lines.delete(id)
    this.#written.delete(id)
    await this.#journal.remove(nameOf(id))
  }

  async #compact(id: string): Promise<void> {
    const lines = this.#lines.get(id) ?? []
    try {
      await this.#journal.rewrite(nameOf(id), lines)
      this.#written.set(id, lines.length)
    } catch (error) {
      this.#log.error('shortening a run history failed', { automation: id, error: String(error) })
    }
  }
}
