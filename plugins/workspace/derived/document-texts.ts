import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { ignored, type Host } from '../../../sdk/index.js'
import { bytesOfSwept, openSweptFile, type SweptFile } from '../tree/sweep.js'
import type { DerivedStore } from './derived-store.js'
import type { Deriver } from './deriver.js'
import { ownBinaryEndings, type DocumentFormat } from './document-format.js'
import { DocumentReaders, textKey, type DocumentReader } from './document-reader.js'

/** What derives and keeps the texts of documents. */
export interface DerivedParts {
  readonly store: DerivedStore
  readonly deriver: Deriver
  readonly readers: DocumentReaders
}

/** A document of a tree whose text is in a file of the folder of texts. */
export interface DocumentTextFile {
  readonly path: string
  /** The file's name. */
  readonly file: string
}

/** What is known of a file while its size and time are these. */
interface KnownFile {
  readonly size: number
  readonly mtimeMs: number
  readonly ino: number
  readonly hash: string
  /** Undefined: no document of the sandbox's own formats. */
  readonly format: DocumentFormat | undefined
  readonly binary: boolean
  /** It is not derived again before. */
  readonly restsUntil?: number
}

const MOST_DERIVED = 20 * 1024 * 1024
const MOST_KNOWN = 10_000
const MOST_WAITING = 500
const LIMITS = { limitMs: 60_000, waiting: 3 }
const REST_MS = 60_000

/** Keeps the texts of documents for searches: derives those that are new in the background, one at a time. */
export class DocumentTexts {
  readonly #host: Pick<Host, 'call' | 'place' | 'signal'>
  readonly #parts: DerivedParts
  readonly #known = new Map<string, KnownFile>()
  /** Those that are to be read, and the one that is being read. */
  readonly #waiting = new Map<string, { readonly root: string; readonly path: string }>()
  #working: Promise<void> | undefined

  constructor(host: Pick<Host, 'call' | 'place' | 'signal'>, parts: DerivedParts) {
    this.#host = host
    this.#parts = parts
  }

  /** The folder of texts. */
  get folder(): string {
    return this.#parts.store.folder
  }

  /** The endings of the names of documents that are not text. */
  async endings(): Promise<ReadonlySet<string>> {
    return new Set([...ownBinaryEndings, ...(await this.#parts.readers.types()).map(({ ending }) => ending)])
  }

  /** The texts of documents of a tree; those that are not derived yet are waited for this long, then counted. */
  async of(
    root: string,
    paths: readonly string[],
    waitMs: number,
  ): Promise<{ texts: DocumentTextFile[]; waiting: number }> {
    const first = await this.#present(root, paths)
    if (first.waiting === 0 || !this.#working) return first
    let timer: NodeJS.Timeout | undefined
    await Promise.race([this.#working, new Promise(resolve => (timer = setTimeout(resolve, waitMs)))])
    clearTimeout(timer)
    return this.#present(root, paths)
  }

  async #present(root: string, paths: readonly string[]): Promise<{ texts: DocumentTextFile[]; waiting: number }> {
    const types = await this.#parts.readers.types()
    const texts: DocumentTextFile[] = []
    let waiting = 0
    for (const path of paths) {
      using opened = openSweptFile(root, path)
      if (!opened || opened.stats.size > MOST_DERIVED) continue
      const name = nameOf(root, path)
      const known = this.#knownAs(name, opened)
      const reader = known && readerFor(known, path, types)
      if (known && !reader) continue
      const key = known && reader && textKey(known.hash, reader)
      // On a full disk a text may not be written: the search goes on without it.
      const file = key === undefined ? undefined : await this.#parts.store.textFile(key).catch(() => undefined)
      if (file === 'failed') continue
      if (file !== undefined) texts.push({ path, file })
      else if (this.#waiting.has(name) || (known?.restsUntil ?? 0) < Date.now()) {
        waiting += 1
        if (this.#waiting.size < MOST_WAITING) this.#waiting.set(name, { root, path })
      }
    }
    if (this.#waiting.size > 0) this.#working ??= this.#work().finally(() => (this.#working = undefined))
    return { texts, waiting }
  }

  #knownAs(name: string, { stats }: SweptFile): KnownFile | undefined {
    const known = this.#known.get(name)
    return known && known.size === stats.size && known.mtimeMs === stats.mtimeMs && known.ino === stats.ino
      ? known
      : undefined
  }

  async #work(): Promise<void> {
    for (const [name, { root, path }] of this.#waiting) {
      if (this.#host.signal.aborted) return
      await this.#read(root, path).catch(ignored('a later search tries it again'))
      this.#waiting.delete(name)
    }
  }

  async #read(root: string, path: string): Promise<void> {
    using opened = openSweptFile(root, path)
    if (!opened) return
    const { size, mtimeMs, ino } = opened.stats
    const bytes = await bytesOfSwept(opened)
    const { store, deriver, readers } = this.#parts
    const { format, binary } = DocumentReaders.looksOf(path, bytes)
    const hash = createHash('sha256').update(bytes).digest('hex')
    const known = { size, mtimeMs, ino, hash, format, binary }
    this.#know(nameOf(root, path), known)
    const reader = readerFor(known, path, await readers.types())
    if (!reader) return
    const key = textKey(hash, reader)
    if ((await store.textFile(key)) !== undefined) return
    // Whatever goes wrong, a file is not tried at every search.
    this.#know(nameOf(root, path), { ...known, restsUntil: Date.now() + REST_MS })
    const { derivation } = await deriver.derive(key, reader, { name: basename(path), bytes: async () => bytes }, LIMITS)
    if ('failed' in derivation || root !== this.#host.place.workspace) return
    await this.#host.call('kernel.events.publish', { domain: 'index', key: path, within: [path] })
  }

  #know(name: string, known: KnownFile): void {
    this.#known.delete(name)
    this.#known.set(name, known)
    if (this.#known.size > MOST_KNOWN) this.#known.delete(this.#known.keys().next().value!)
  }
}

const nameOf = (root: string, path: string): string => `${root}\0${path}`

const readerFor = (
  { format, binary }: KnownFile,
  path: string,
  types: Awaited<ReturnType<DocumentReaders['types']>>,
): DocumentReader | undefined => {
  if (format) return { kind: 'format', format }
  return binary ? DocumentReaders.named(path, types) : undefined
}
