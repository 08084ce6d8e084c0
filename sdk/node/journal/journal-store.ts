import { setMaxListeners } from 'node:events'
import type { Writable } from 'node:stream'
import type { AppendOptions, ReadOptions } from '../../host.js'
import { namesBelow } from '../files/disk.js'
import { controlEvent, formatOf, lines } from './format.js'
import type { Control } from './format.js'
import type { JournalFile } from './log-file.js'
import { OpenJournal } from './open-journal.js'
import { Watcher } from './watcher.js'
import type { Idle, Last } from './watcher.js'
import { placeOfName } from '../files/names.js'
import { refuse } from '../../refusal.js'

/** Limits on open journals and cached bytes. */
export interface JournalOptions {
  /** Bytes of a journal's end that are cached. */
  readonly tail?: number
  /** Idle journals kept open. */
  readonly open?: number
  /** Milliseconds after which an idle journal is closed. */
  readonly idle?: number
}

export interface PumpOptions {
  /** Written when nothing was sent for a while. */
  readonly idle?: Idle
  /** Written last, where the signal is aborted between two entries. */
  readonly last?: Last
}

const MIB = 1024 * 1024

/** All journals below a folder, by name `<plugin>/<journal>`. Only one process may use the folder. */
export class JournalStore {
  readonly #folder: string
  readonly #tail: number
  readonly #most: number
  readonly #rest: number
  readonly #journals = new Map<string, OpenJournal>()
  #sweeper: NodeJS.Timeout | undefined
  #ending: Promise<void> | undefined

  constructor(folder: string, { tail = MIB, open = 64, idle = 30_000 }: JournalOptions = {}) {
    this.#folder = folder
    this.#tail = tail
    this.#most = open
    this.#rest = idle
  }

  /** Appends entries in order and returns the position of the last; they are in the file once it resolves. */
  async append(name: string, entries: readonly unknown[], { flush = false }: AppendOptions = {}): Promise<number> {
    return this.#journal(name).append({ jsons: entries.map(json) }, flush)
  }

  /** Closes a journal of events with control events, which have no position. */
  async close(name: string, tail: readonly Control[]): Promise<void> {
    await this.#journal(name).append({ jsons: [], end: endOf(name, tail) }, false)
  }

  /** Ends the watchers that there are now with control events that are not stored. */
  async interrupt(name: string, tail: readonly Control[]): Promise<void> {
    const end = Buffer.from(endOf(name, tail))
    for (const watcher of [...(this.#journals.get(name)?.wakes.watchers ?? [])]) watcher.interrupt?.(end)
  }

  /** The complete entries after a position; empty if there is no such journal. */
  async read<T>(name: string, after = 0, { damaged }: ReadOptions = {}): Promise<T[]> {
    return this.#journal(name).use(async log => {
      const found: T[] = []
      if (!log.exists || after >= log.entries) return found
      for await (const { values } of log.values(await log.offsetAfter(after), damaged)) {
        for (const value of values) found.push(value as T)
      }
      return found
    })
  }

  /** The number of entries, and whether the journal was closed. */
  async stat(name: string): Promise<{ entries: number; closed: boolean } | undefined> {
    return this.#journal(name).use(async ({ exists, entries, closed }) => (exists ? { entries, closed } : undefined))
  }

  /** Replaces the journal atomically; ends watchers of the old one. */
  async rewrite(name: string, entries: readonly unknown[]): Promise<void> {
    await this.#journal(name).rewrite(entries.map(json))
  }

  /** Renames a journal, replacing one with the new name; ends watchers of both. */
  async rename(name: string, to: string): Promise<void> {
    const { extension } = formatOf(to)
    if (extension !== formatOf(name).extension)
      refuse('invalid', `${to}: expected a name for a journal of the same kind as ${name}`)
    const path = placeOfName(this.#folder, to, extension, 2)
    const replaced = this.#journals.get(to)
    this.#journals.delete(to)
    await replaced?.shut()
    await this.#journal(name).move(path)
  }

  /** Removes a journal and ends its watchers. */
  async remove(name: string): Promise<void> {
    await this.#journal(name).remove()
  }

  /** The names with a prefix, sorted. */
  async list(prefix: string): Promise<string[]> {
    return namesBelow(this.#folder, prefix, name => formatOf(name).extension)
  }

  /** The values of the entries after a position, then of new entries until the journal is closed. */
  async *follow(name: string, after: number, signal: AbortSignal): AsyncGenerator<unknown, void> {
    const journal = this.#journal(name)
    const { log, release } = await journal.pin()
    setMaxListeners(0, signal)
    try {
      present(name, log)
      for (let at = await log.offsetAfter(after); !signal.aborted && !log.gone;) {
        for await (const { values, next } of log.values(at)) {
          at = next
          for (const value of values) {
            yield value
            if (signal.aborted) return
          }
        }
        if (at < log.size || signal.aborted || log.gone) continue
        if (log.closed) return
        await journal.wakes.more(signal)
      }
    } finally {
      release()
    }
  }

  /**
   * Writes a journal's stored bytes after a position, then new ones, at the pace of the sink.
   *
   * Resolves when the journal is closed, removed or replaced, when the sink closes, or when the signal is aborted.
   */
  async pump(
    name: string,
    after: number,
    out: Writable,
    signal: AbortSignal,
    options: PumpOptions = {},
  ): Promise<void> {
    const journal = this.#journal(name)
    await journal.use(async found => {
      const log = present(name, found)
      await new Watcher(log, journal.wakes, await log.offsetAfter(after), out, options).run(signal)
    })
  }

  /** Flushes all pending writes to the disk and ends all watchers. */
  shutdown(): Promise<void> {
    clearInterval(this.#sweeper)
    this.#ending ??= Promise.allSettled([...this.#journals.values()].map(journal => journal.shut())).then(ends => {
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    })
    return this.#ending
  }

  #journal(name: string): OpenJournal {
    const known = this.#journals.get(name)
    if (known && !known.broken) return known
    if (this.#ending) refuse('unavailable', 'the sandbox is stopping and its journals are shut')
    const format = formatOf(name)
    const path = placeOfName(this.#folder, name, format.extension, 2)
    if (this.#journals.size >= this.#most) this.#sweep(0)
    const opened = new OpenJournal({ name, path, format, tailBytes: this.#tail })
    this.#journals.set(name, opened)
    this.#sweeper ??= setInterval(() => this.#sweep(this.#rest), Math.max(1, this.#rest / 2)).unref()
    return opened
  }

  /** Closes journals that were idle for `rest` ms; with 0 closes the least recently used half. */
  #sweep(rest: number): void {
    const before = performance.now() - rest
    const idle = [...this.#journals].filter(([, journal]) => journal.idle && journal.usedAt <= before)
    if (rest === 0) idle.sort(([, a], [, b]) => a.usedAt - b.usedAt).splice(Math.ceil(idle.length / 2))
    for (const [name, journal] of idle) {
      this.#journals.delete(name)
      journal.retire()
    }
  }
}

/** The text of control events that end a journal of events. */
const endOf = (name: string, tail: readonly Control[]): string => {
  const last = tail.at(-1)?.event
  if (formatOf(name) === lines) refuse('invalid', `${name}: expected a journal of events, found one of lines`)
  if (last !== 'done' && last !== 'error')
    refuse('invalid', `tail: expected to end with done or error, found ${last ?? 'nothing'}`)
  return tail.map(controlEvent).join('')
}

const json = (value: unknown): string => JSON.stringify(value) ?? refuse('invalid', 'entry: expected a JSON value')

const present = (name: string, log: JournalFile): JournalFile =>
  log.exists ? log : refuse('not-found', `there is no journal ${name}`)
