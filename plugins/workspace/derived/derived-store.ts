import { mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import type { Derivation } from './derive-child.js'

/** The stored result for a document: its text, or why there is none. */
export interface KeptDerivation {
  readonly deriver: string
  readonly derivedAt: number
  readonly derivation: Derivation
}

const MOST_BYTES = 256 * 1024 * 1024
const ENDING = '.json'
const TEXT_ENDING = '.md'

const jsonOf = <T>(text: string): T | undefined => {
  try {
    return JSON.parse(text) as T
  } catch {
    return undefined
  }
}

/** Notes that a file was used; false: it is not there. */
const used = (path: string): Promise<boolean> => {
  const now = new Date()
  return utimes(path, now, now).then(
    () => true,
    () => false,
  )
}

/** Texts of documents by the hash of their bytes: at most 256 MiB, the least recently used go first. */
export class DerivedStore {
  readonly folder: string
  #bytes: number | undefined

  constructor(folder: string) {
    this.folder = folder
  }

  async get(key: string): Promise<KeptDerivation | undefined> {
    const path = join(this.folder, key + ENDING)
    try {
      const kept = JSON.parse(await readFile(path, 'utf8')) as KeptDerivation
      await used(path)
      return kept
    } catch {
      // A missing or damaged one is derived again.
      return undefined
    }
  }

  async put(key: string, kept: KeptDerivation): Promise<void> {
    await this.#write(key + ENDING, JSON.stringify(kept))
  }

  /**
   * The name of a file that has the text of a content alone, for programs that read it.
   *
   * @returns `failed` where deriving failed, undefined where nothing was derived.
   */
  async textFile(key: string): Promise<string | undefined> {
    const name = key + TEXT_ENDING
    if (await used(join(this.folder, name))) return name
    const derivation = (await this.get(key))?.derivation
    if (!derivation) return undefined
    if ('failed' in derivation) return 'failed'
    await this.#write(name, derivation.markdown)
    return name
  }

  /** Notes which content another name stands for, so that whether it is kept is known without reading it. */
  async alias(name: string, key: string): Promise<void> {
    await this.#write(name + ENDING, JSON.stringify({ key }))
  }

  /** Whether the content that a name stands for is kept. */
  async knows(name: string): Promise<boolean> {
    const text = await readFile(join(this.folder, name + ENDING), 'utf8').catch(() => undefined)
    const found = text === undefined ? undefined : jsonOf<{ key: string }>(text)
    return found !== undefined && (await stat(join(this.folder, found.key + ENDING)).catch(() => false)) !== false
  }

  async #write(name: string, text: string): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    await writeAtomic(join(this.folder, name), text)
    this.#bytes = (this.#bytes ?? 0) + Buffer.byteLength(text)
    if (this.#bytes === Buffer.byteLength(text) || this.#bytes > MOST_BYTES) await this.#trim()
  }

  async #trim(): Promise<void> {
    const names = await readdir(this.folder)
    const found = await Promise.all(
      names.map(async name => {
        const path = join(this.folder, name)
        // Another write may have moved its temporary file into place.
        const stats = await stat(path).catch(() => undefined)
        return stats && { path, size: stats.size, mtimeMs: stats.mtimeMs }
      }),
    )
    const files = found.filter(file => file !== undefined)
    this.#bytes = files.reduce((sum, { size }) => sum + size, 0)
    for (const { path, size } of files.sort((one, other) => one.mtimeMs - other.mtimeMs)) {
      if (this.#bytes <= 0.9 * MOST_BYTES) return
      await rm(path, { force: true })
      this.#bytes -= size
    }
  }
}
