import type { Host } from '../../../sdk/index.js'
import type { KeptExtension } from './kept-extension.js'

const JOURNAL = 'records'
/** The number of obsolete lines after which the journal is rewritten. */
const MOST_STALE = 500

/** One line of the journal: a new state of a record, or its removal. */
interface RecordLine {
  readonly id: string
  readonly record?: KeptExtension
}

/** The records of extensions: a journal in which the last line of an id counts. */
export class KeptExtensions {
  readonly #journal: Host['journal']
  readonly #kept = new Map<string, KeptExtension>()
  #lines = 0

  constructor(journal: Host['journal']) {
    this.#journal = journal
  }

  /** Reads the journal, once. */
  async load(): Promise<void> {
    for (const { id, record } of await this.#journal.read<RecordLine>(JOURNAL)) {
      this.#lines += 1
      if (record) this.#kept.set(id, record)
      else this.#kept.delete(id)
    }
  }

  get(id: string): KeptExtension | undefined {
    return this.#kept.get(id)
  }

  all(): KeptExtension[] {
    return [...this.#kept.values()]
  }

  /** Replaces a record; it is durable when this resolves. */
  async put(record: KeptExtension): Promise<void> {
    await this.#write({ id: record.id, record })
    this.#kept.set(record.id, record)
  }

  async delete(id: string): Promise<void> {
    if (!this.#kept.has(id)) return
    await this.#write({ id })
    this.#kept.delete(id)
  }

  async #write(line: RecordLine): Promise<void> {
    if (this.#lines - this.#kept.size >= MOST_STALE) {
      const lines = this.all().map((record): RecordLine => ({ id: record.id, record }))
      await this.#journal.rewrite(JOURNAL, lines)
      this.#lines = lines.length
    }
    await this.#journal.append(JOURNAL, [line], { flush: true })
    this.#lines += 1
  }
}

/** A record that is switched off: an update of it is not watched any more. */
export const switchedOff = (record: KeptExtension): KeptExtension => {
  const { installed } = record
  if (installed?.health?.state !== 'watching') return { ...record, enabled: false }
  const { health: _health, ...rest } = installed
  return { ...record, enabled: false, installed: rest }
}
