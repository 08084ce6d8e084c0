import { setMaxListeners } from 'node:events'
import type { Writable } from 'node:stream'
import type { AppendOptions, ReadOptions } from '../../host.js'
import { namesBelow } from '../files/disk.js'
import { controlEvent, formatOf, lines } from './format.js'
import type { Control } from './format.js'
import type { JournalFile } from './log-file.js'
import { OpenJournal } from './open-journal.js'
import { Watcher } from './watcher.js'
import type { Idle } from './watcher.js'
import { placeOfName } from '../files/names.js'
import { refuse } from '../../refusal.js'

/** How much of the journals stays open and in memory. */
export interface JournalOptions {
  /** Bytes of a live journal's end that are kept in memory. */
  readonly tail?: number
  /** Idle journals kept open. */
  readonly open?: number
  /** Milliseconds after which an idle journal is let go. */
  readonly idle?: number
}

export interface PumpOptions {
  /** What goes out when nothing was sent for a while. */
  readonly idle?: Idle
}

const MIB = 1024 * 1024

/** Every journal below a folder, by its name `<plugin>/<journal>`. One process at a time may have the folder. */
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

  /** Appends entries in order and answers the position of the last; they are in the file by then. */
  async append(name: string, entries: readonly unknown[], { flush = false }: AppendOptions = {}): Promise<number> {
    return this.#journal(name).append({ jsons: entries.map(json) }, flush)
  }

  /** Ends a journal of events with control events that have no position. */
  async close(name: string, tail: readonly Control[]): Promise<void> {
    const last = tail.at(-1)?.event
    if (formatOf(name) === lines) refuse('invalid', `${name}: expected a journal of events, found one of lines`)
    if (last !== 'done' && last !== 'error') {
      refuse('invalid', `tail: expected to end with done or error, found ${last ?? 'nothing'}`)
    }
    await this.#journal(name).append({ jsons: [], end: tail.map(controlEvent).join('') }, false)
  }

  /** The entries after a position that are whole now; none when there is no such journal. */
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

  /** How many entries there are and whether the journal was closed. */
  async stat(name: string): Promise<{ entries: number; closed: boolean } | undefined> {
    return this.#journal(name).use(async ({ exists, entries, closed }) => (exists ? { entries, closed } : undefined))
  }

  /** Replaces the whole journal in one step; watchers of the old one end. */
  async rewrite(name: string, entries: readonly unknown[]): Promise<void> {
    await this.#journal(name).rewrite(entries.map(json))
  }

  /** Renames a journal and keeps its bytes; watchers of it, and of a journal that had the name, end. */
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

  /** Removes a journal; its watchers end. */
  async remove(name: string): Promise<void> {
    await this.#journal(name).remove()
  }

  /** The names that begin with a prefix, sorted. */
  async list(prefix: string): Promise<string[]> {
    return namesBelow(this.#folder, prefix, name => formatOf(name).extension)
  }

  /** The values of the entries after a position, and then of those to come until the journal is closed. */
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
   * Writes a journal's bytes as stored: those after a position, then those to come, at the pace of the sink.
   *
   * It is over when the journal is closed, removed or replaced, when the sink is gone, or when the signal is aborted.
   */
  async pump(
    name: string,
    after: number,
    out: Writable,
    signal: AbortSignal,
    { idle }: PumpOptions = {},
  ): Promise<void> {
    const journal = this.#journal(name)
    await journal.use(async found => {
      const log = present(name, found)
      await new Watcher(log, journal.wakes, await log.offsetAfter(after), out, idle).run(signal)
    })
  }

  /** Writes everything that was asked for to the disk and ends everyone who follows. */
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

  /** Lets go of journals that were idle for so long; with none to wait for, of the least recently used half. */
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

const json = (value: unknown): string => JSON.stringify(value) ?? refuse('invalid', 'entry: expected a JSON value')

const present = (name: string, log: JournalFile): JournalFile =>
  log.exists ? log : refuse('not-found', `there is no journal ${name}`)
