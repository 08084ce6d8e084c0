import { refuse, type Host } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import { programNamed } from '../../../sdk/node/programs/installed-at.js'
import { programFile } from '../../../sdk/node/programs/package.js'
import { OverMemory, runConfined } from '../confined.js'
import type { Derivation, DeriveOrder } from './derive-child.js'
import type { DerivedStore, KeptDerivation } from './derived-store.js'
import { isCompound, isOlder, type DocumentFormat } from './document-format.js'

const CHILD = programFile('plugins/workspace/derived/derive-child.js')
const AT_ONCE = 2
const MOST_WAITING = 5
const LIMIT_MS = 120_000
const MOST_OUTPUT = 16 * 1024 * 1024
const LFS = 'version https://git-lfs.github.com/spec/'
/** A new version derives everything again. */
const VERSION = 2

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

  /** The name under which the content of a git object is known. */
  static aliasOf(blob: string, format: DocumentFormat): string {
    return `git-${Deriver.keyOf(blob, format)}`
  }

  /** Whether a content is being derived. */
  isRunning(key: string): boolean {
    return this.#running.has(key)
  }

  /** Derives a content, or joins who does; refused when too many wait. A failure is kept, and answered. */
  async derive(
    key: string,
    format: DocumentFormat,
    bytes: () => Promise<Buffer>,
    { limitMs = LIMIT_MS, waiting = MOST_WAITING } = {},
  ): Promise<KeptDerivation> {
    const known = this.#running.get(key)
    if (known) return known
    if (this.#running.size >= AT_ONCE + waiting)
      refuse('too-many', `${waiting} documents are waiting to be derived: try again later`, { retryAfter: 5 })
    const started = this.#slots.run(async () => {
      const kept = {
        deriver: deriverOf(format),
        derivedAt: Date.now(),
        derivation: await this.#run(format, await bytes(), limitMs),
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

  async #run(format: DocumentFormat, bytes: Buffer, limitMs: number): Promise<Derivation> {
    const compound = isCompound(bytes)
    if (isOlder(format)) {
      const program = await officeProgram()
      if (program === undefined) return refuseWithoutOffice(format)
      return this.#confined({ format, program }, bytes, limitMs)
    }
    if (compound && format !== 'rtf') return { failed: 'it is encrypted, or in an older binary format' }
    if (bytes.toString('latin1', 0, LFS.length) === LFS)
      return { failed: 'its content is in Git LFS, and only the pointer to it is here' }
    return this.#confined({ format }, bytes, limitMs)
  }

  async #confined(order: DeriveOrder, bytes: Buffer, limitMs: number): Promise<Derivation> {
    try {
      const { code, stdout, stderr, timedOut, truncated } = await runConfined(this.#place, CHILD, {
        input: Buffer.concat([Buffer.from(`${JSON.stringify(order)}\n`), bytes]),
        timeoutMs: limitMs,
        maxBytes: MOST_OUTPUT,
        signal: this.#signal,
      })
      if (timedOut) return { failed: `it could not be read within ${limitMs / 1000} s` }
      if (code !== 0 || truncated)
        return { failed: `reading it ended with ${code}${/heap/i.test(stderr) ? ': it took too much memory' : ''}` }
      return JSON.parse(stdout.toString()) as Derivation
    } catch (error) {
      if (error instanceof OverMemory) return { failed: error.message }
      throw error
    }
  }
}

/** The program that reads older binary formats; undefined: it is not installed. */
export const officeProgram = async (): Promise<string | undefined> =>
  (await programNamed('soffice')) ?? (await programNamed('libreoffice'))

/** Refuses to read an older format on a machine that lacks the program for it. */
export const refuseWithoutOffice = (format: string): never =>
  refuse(
    'missing-program',
    `reading .${format} files needs LibreOffice (soffice), which is not installed: on Debian, apt-get install `
      + 'libreoffice-core-nogui libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui',
  )

const deriverOf = (format: DocumentFormat): string =>
  ['ipynb', 'csv', 'tsv', 'xlsx', 'subtitles'].includes(format) ? format : `officeparser ${format}`
