import { join } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import { packageFolder } from '../../../sdk/node/programs/package.js'
import { OverMemory, runConfined } from '../confined.js'
import type { Derivation } from './derive-child.js'
import type { DerivedStore, KeptDerivation } from './derived-store.js'
import { isCompound, type DocumentFormat } from './document-format.js'

const CHILD = 'dist/bundle/plugins/workspace/derived/derive-child.js'
const AT_ONCE = 2
const MOST_WAITING = 5
const LIMIT_MS = 120_000
const MOST_OUTPUT = 16 * 1024 * 1024
/** A new version derives everything again. */
const VERSION = 1

/** Derives the texts of documents, each content once at a time. */
export class Deriver {
  readonly #place: Host['place']
  readonly #store: DerivedStore
  readonly #signal: AbortSignal
  readonly #slots = new Semaphore(AT_ONCE)
  readonly #running = new Map<string, Promise<KeptDerivation>>()

  constructor(place: Host['place'], store: DerivedStore, signal: AbortSignal) {
    this.#place = place
    this.#store = store
    this.#signal = signal
  }

  static keyOf(hash: string, format: DocumentFormat): string {
    return `${hash}-${format}-${VERSION}`
  }

  /** Whether a content is being derived. */
  isRunning(key: string): boolean {
    return this.#running.has(key)
  }

  /** Derives a content, or joins a running derivation; refused if too many wait. A failure is stored and returned. */
  async derive(key: string, format: DocumentFormat, bytes: () => Promise<Buffer>): Promise<KeptDerivation> {
    const known = this.#running.get(key)
    if (known) return known
    if (this.#running.size >= AT_ONCE + MOST_WAITING)
      refuse('too-many', `${MOST_WAITING} documents are waiting to be derived: try again later`, { retryAfter: 5 })
    const started = this.#slots.run(async () => {
      const kept = {
        deriver: deriverOf(format),
        derivedAt: Date.now(),
        derivation: await this.#run(format, await bytes()),
      }
      await this.#store.put(key, kept)
      return kept
    })
    this.#running.set(key, started)
    try {
      return await started
    } finally {
      this.#running.delete(key)
    }
  }

  async #run(format: DocumentFormat, bytes: Buffer): Promise<Derivation> {
    if (isCompound(bytes) && format !== 'rtf') return { failed: 'it is encrypted, or in an older binary format' }
    try {
      const { code, stdout, stderr, timedOut, truncated } = await runConfined(
        this.#place,
        join(packageFolder(import.meta.dirname), CHILD),
        {
          input: Buffer.concat([Buffer.from(`${format}\n`), bytes]),
          timeoutMs: LIMIT_MS,
          maxBytes: MOST_OUTPUT,
          signal: this.#signal,
        },
      )
      if (timedOut) return { failed: `it could not be read within ${LIMIT_MS / 1000} s` }
      if (code !== 0 || truncated)
        return { failed: `reading it ended with ${code}${/heap/i.test(stderr) ? ': it took too much memory' : ''}` }
      return JSON.parse(stdout.toString()) as Derivation
    } catch (error) {
      if (error instanceof OverMemory) return { failed: error.message }
      throw error
    }
  }
}

const deriverOf = (format: DocumentFormat): string =>
  ['ipynb', 'csv', 'tsv', 'xlsx', 'subtitles'].includes(format) ? format : `officeparser ${format}`
