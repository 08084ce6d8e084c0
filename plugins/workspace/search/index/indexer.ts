import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { closedAs } from '../../../../sdk/node/files/closed-names.js'
import { isTemporary } from '../../../../sdk/node/files/files.js'
import { IgnoreRules } from '../../tree/ignore-rules.js'
import { sweepTree } from '../../tree/sweep.js'
import { classOf } from '../search-scope.js'
import { chunksOf } from './chunks.js'
import type { IndexedFile, IndexStore } from './index-store.js'
import { parseSource } from './parsed-source.js'

const MOST_FILE = 1024 * 1024
const LOOKED_AT = 8192
const BATCH = 40
const BATCH_MS = 30
const ITSELF = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const LINUX = process.platform === 'linux'
/** The shelf of references, which is not watched. */
const NOT_INDEXED = 'refs'

const pause = () => new Promise<void>(resolve => setImmediate(resolve))

/** Reads a file through a descriptor that the system confirms to be that file; undefined: not a file. */
export const readIndexed = (
  root: string,
  path: string,
): { size: number; mtimeMs: number; bytes?: Buffer } | undefined => {
  const place = join(root, path)
  let fd: number | undefined
  try {
    fd = openSync(place, ITSELF)
    const real = LINUX ? readlinkSync(`/proc/self/fd/${fd}`) : realpathSync.native(place)
    const stats = fstatSync(fd)
    if (real !== place || !stats.isFile()) return undefined
    const { size, mtimeMs } = stats
    return { size, mtimeMs, ...(size <= MOST_FILE && { bytes: readFileSync(fd) }) }
  } catch {
    return undefined
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** Keeps the index up to date with the shared tree. */
export class Indexer {
  readonly #root: string
  readonly #store: IndexStore
  #pending = new Set<string>()
  #total = 0
  #inHand = 0
  #sweep = false
  /** A change of rules or more than is known may have happened: everything is compared again. */
  #compares = true
  #working = false
  #built = false
  #full = false
  #agreedAt = 0
  readonly #passOver: ReadonlySet<string>
  /** Called with each file before a grammar reads it. */
  onReading: ((path: string) => void) | undefined
  /** Called when everything is read. */
  onCurrent: (() => void) | undefined

  constructor(root: string, store: IndexStore, passOver: readonly string[]) {
    this.#root = root
    this.#store = store
    this.#passOver = new Set(passOver)
  }

  get state(): { built: boolean; behind: number; progress: number; agreedAt: number; full: boolean } {
    const behind = this.#pending.size + this.#inHand + (this.#compares || this.#sweep || this.#working ? 1 : 0)
    return {
      built: this.#built,
      behind,
      progress: this.#total === 0 ? 0 : Math.min(1, Math.max(0, 1 - this.#pending.size / this.#total)),
      agreedAt: behind === 0 ? Date.now() : this.#agreedAt,
      full: this.#full,
    }
  }

  /** Compares everything with the disk. */
  compare(): void {
    this.#compares = true
    void this.#work()
  }

  /** Reads changed paths: files, or added and removed folders. */
  changed(paths: readonly string[]): void {
    const rules = new IgnoreRules(this.#root)
    for (const path of paths) {
      if (path.endsWith('.gitignore')) this.#compares = true
      const stats = lstatSync(join(this.#root, path), { throwIfNoEntry: false })
      if (stats?.isDirectory()) this.#compares = true
      else if (!stats?.isFile() || this.#passes(path) || rules.ignores(path, false)) this.#gone(path)
      else this.#pending.add(path)
    }
    this.#total = Math.max(this.#total, this.#pending.size)
    void this.#work()
  }

  /** Resolves when everything is read, or after a time. */
  async settled(ms: number): Promise<void> {
    const until = performance.now() + ms
    while (this.state.behind > 0 && performance.now() < until) await new Promise(resolve => setTimeout(resolve, 5))
  }

  #passes(path: string): boolean {
    const parts = path.split('/')
    return closedAs(parts) !== undefined || parts[0] === NOT_INDEXED || isTemporary(parts.at(-1)!)
  }

  #gone(path: string): void {
    this.#pending.delete(path)
    this.#store.transaction(() => {
      this.#store.delete(path)
      const below = `${path}/`
      for (const file of this.#store.all<{ path: string }>(
        'SELECT path FROM files WHERE path >= ? AND path < ?',
        below,
        `${path}0`,
      ))
        this.#store.delete(file.path)
    })
  }

  async #work(): Promise<void> {
    if (this.#working) return
    this.#working = true
    try {
      while (this.#compares || this.#pending.size > 0) {
        if (this.#compares) await this.#compareAll()
        await this.#readBatch()
        await pause()
      }
      this.#built = true
      this.#agreedAt = Date.now()
      this.onCurrent?.()
    } catch (error) {
      // A damaged index is dropped; after other failures the next change tries again.
      if (/malformed|not a database|corrupt|disk I\/O/i.test(String(error))) {
        this.#store.rebuild()
        this.#built = false
        this.#compares = true
        setTimeout(() => void this.#work(), 100)
      } else throw error
    } finally {
      this.#working = false
    }
  }

  /** Starts again after the index was dropped. */
  rebuild(): void {
    this.#store.rebuild()
    this.#built = false
    this.compare()
  }

  async #compareAll(): Promise<void> {
    this.#compares = false
    this.#sweep = true
    try {
      const known = this.#store.files()
      const tree = { root: this.#root, reach: undefined, readsGit: false }
      for await (const { path, kind } of sweepTree(tree)) {
        if (kind !== 'file' || this.#passes(path)) continue
        const stats = lstatSync(join(this.#root, path), { throwIfNoEntry: false })
        if (!stats?.isFile()) continue
        const before = known.get(path)
        known.delete(path)
        if (before?.size !== stats.size || before.mtime !== stats.mtimeMs) this.#pending.add(path)
      }
      this.#total = this.#pending.size
      const gone = [...known.keys()]
      for (let from = 0; from < gone.length; from += BATCH) {
        this.#store.transaction(() => gone.slice(from, from + BATCH).forEach(path => this.#store.delete(path)))
        await pause()
      }
    } finally {
      this.#sweep = false
    }
  }

  async #readBatch(): Promise<void> {
    if (this.#store.isFull()) {
      this.#full = true
      this.#pending.clear()
      return
    }
    const began = performance.now()
    const read: IndexedFile[] = []
    const gone: string[] = []
    for (const path of this.#pending) {
      if (read.length >= BATCH || performance.now() - began > BATCH_MS) break
      this.#pending.delete(path)
      this.#inHand += 1
      const file = await this.#read(path)
      if (file) read.push(file)
      else gone.push(path)
    }
    this.#store.transaction(() => {
      for (const path of gone) this.#store.delete(path)
      for (const file of read) this.#store.put(file)
    })
    this.#inHand = 0
  }

  async #read(path: string): Promise<IndexedFile | undefined> {
    const found = readIndexed(this.#root, path)
    if (!found) return undefined
    const { bytes, size, mtimeMs } = found
    const file = { path, size, mtimeMs, class: classOf(path), chunks: [] }
    if (!bytes || bytes.subarray(0, LOOKED_AT).includes(0)) return file
    const text = bytes.toString()
    this.onReading?.(path)
    // If a grammar fails on a file, its words are still indexed.
    const source = this.#passOver.has(path) ? undefined : await parseSource(path, text).catch(() => undefined)
    return { ...file, ...(source && { source }), chunks: chunksOf(text, source?.symbols ?? []) }
  }
}
