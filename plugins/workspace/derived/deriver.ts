import { refuse, type Host } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import type { Derivation } from './derive-child.js'
import type { DerivedStore, KeptDerivation } from './derived-store.js'
import type { DocumentReader } from './document-reader.js'
import { ExtensionReading } from './read-by-extension.js'
import { readFormat } from './read-format.js'

const AT_ONCE = 2
const MOST_WAITING = 5
const LIMIT_MS = 120_000

/** A document: its name, and its bytes once they are needed. */
export interface DocumentSource {
  readonly name: string
  readonly bytes: () => Promise<Buffer>
}

/** What is being derived by the sandbox itself, or by extensions: neither waits for the other. */
interface Lane {
  readonly slots: Semaphore
  readonly running: Map<string, Promise<KeptDerivation>>
}

const newLane = (): Lane => ({ slots: new Semaphore(AT_ONCE), running: new Map() })

/** Derives the texts of documents, each content once at a time. */
export class Deriver {
  readonly #place: Host['place']
  readonly #store: DerivedStore
  readonly #signal: AbortSignal
  readonly #extensions: ExtensionReading
  readonly #lanes = { format: newLane(), extension: newLane() }

  constructor(host: Pick<Host, 'call' | 'place' | 'signal'>, store: DerivedStore) {
    this.#place = host.place
    this.#store = store
    this.#signal = host.signal
    this.#extensions = new ExtensionReading(host)
  }

  /** Whether a content is being derived. */
  isRunning(key: string): boolean {
    return Object.values(this.#lanes).some(({ running }) => running.has(key))
  }

  /** Derives a content, or joins who does; refused when too many wait. A failure is kept, and answered. */
  async derive(
    key: string,
    reader: DocumentReader,
    source: DocumentSource,
    { limitMs = LIMIT_MS, waiting = MOST_WAITING } = {},
  ): Promise<KeptDerivation> {
    const { running, slots } = this.#lanes[reader.kind]
    const known = running.get(key)
    if (known) return known
    if (running.size >= AT_ONCE + waiting)
      refuse('too-many', `${waiting} documents are waiting to be derived: try again later`, { retryAfter: 5 })
    const started = slots.run(async () => {
      const derivation = await this.#read(reader, source, limitMs)
      const kept = { deriver: deriverOf(reader), derivedAt: Date.now(), derivation }
      if (!('failed' in derivation && derivation.passing)) await this.#store.put(key, kept)
      return kept
    })
    running.set(key, started)
    try {
      return await started
    } finally {
      running.delete(key)
    }
  }

  async #read(reader: DocumentReader, { name, bytes }: DocumentSource, limitMs: number): Promise<Derivation> {
    const options = { limitMs, signal: this.#signal }
    return reader.kind === 'format'
      ? readFormat(this.#place, reader.format, await bytes(), options)
      : this.#extensions.read(reader.type, name, await bytes(), options)
  }
}

const deriverOf = (reader: DocumentReader): string => {
  if (reader.kind === 'extension') return `extension ${reader.type.extension}`
  const { format } = reader
  return ['ipynb', 'csv', 'tsv', 'xlsx', 'subtitles'].includes(format) ? format : `officeparser ${format}`
}
