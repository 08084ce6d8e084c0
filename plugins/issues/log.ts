import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import type { Host } from '../../sdk/index.js'
import type { LogEntry } from './stored.js'

/** An entry before its number. */
export type UnnumberedEntry = LogEntry extends infer Each ? (Each extends LogEntry ? Omit<Each, 'seq'> : never) : never

interface Waiting {
  readonly entries: readonly UnnumberedEntry[]
  readonly done: (entries: readonly LogEntry[]) => void
  readonly failed: (error: unknown) => void
}

const PREFIX = 'log/'
const DIGITS = 12

/**
 * The log of what happened: an entry is in it before it has an effect. What was stored elsewhere since is dropped with
 * its file.
 */
export class IssueLog {
  readonly #journal: Host['journal']
  readonly #apply: (entry: LogEntry) => void
  readonly #turns = new KeyedMutex()
  #waiting: Waiting[] = []
  #file = ''
  #next = 1
  #filled = 0

  /** @param apply Called with each entry in order, once it is in the log and before `add` returns. */
  constructor(journal: Host['journal'], apply: (entry: LogEntry) => void) {
    this.#journal = journal
    this.#apply = apply
  }

  /** The number of the newest entry. */
  get last(): number {
    return this.#next - 1
  }

  /** Entries that are in the log alone. */
  get filled(): number {
    return this.#filled
  }

  /** Applies what an earlier daemon logged; `after` is the newest entry that is known to be stored. */
  async recover(after: number): Promise<void> {
    this.#next = after + 1
    for (const file of await this.#journal.list(PREFIX))
      for (const entry of await this.#journal.read<LogEntry>(file)) {
        this.#apply(entry)
        this.#filled += 1
        this.#next = Math.max(this.#next, entry.seq + 1)
      }
    this.#begin()
  }

  #begin(): void {
    this.#file = PREFIX + String(this.#next).padStart(DIGITS, '0')
  }

  /** Adds entries, together with those of other callers that wait. */
  add(entries: readonly UnnumberedEntry[]): Promise<readonly LogEntry[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly LogEntry[]>()
    this.#waiting.push({ entries, done: resolve, failed: reject })
    void this.#turns.with('log', () => this.#write())
    return promise
  }

  async #write(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    if (waiting.length === 0) return
    let { last: seq } = this
    const batches = waiting.map(({ entries }) => entries.map(entry => ({ ...entry, seq: ++seq }) as LogEntry))
    try {
      await this.#journal.append(this.#file, batches.flat())
      failpoint('issues.logged')
    } catch (error) {
      for (const { failed } of waiting) failed(error)
      return
    }
    this.#next = seq + 1
    for (const [at, batch] of batches.entries()) {
      for (const entry of batch) this.#apply(entry)
      this.#filled += batch.length
      waiting[at]!.done(batch)
    }
  }

  /**
   * Drops the entries that there are, once `store` has stored what they did. It is called while nothing is added, and
   * takes what it stores before its first wait.
   */
  async drop(store: () => Promise<void>): Promise<void> {
    const { files, stored, filled } = await this.#turns.with('log', async () => {
      const found = await this.#journal.list(PREFIX)
      const count = this.#filled
      this.#filled = 0
      this.#begin()
      return { files: found, filled: count, stored: store() }
    })
    try {
      await stored
    } catch (error) {
      this.#filled += filled
      throw error
    }
    failpoint('issues.stored')
    for (const file of files) await this.#journal.remove(file)
  }
}
