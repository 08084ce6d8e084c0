import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Refusal } from '../../refusal.js'
import { replaceFile } from '../files/disk.js'
import { failpoint } from '../failpoint.js'
import { flushFolder, flushFolders } from '../files/files.js'
import type { Format } from './format.js'
import { JournalFile } from './log-file.js'
import type { Addition } from './log-file.js'
import { Wakes } from './wakes.js'
import { ignored } from '../../ignored.js'

interface Item extends Addition {
  readonly flush: boolean
  done(position: number): void
  fail(error: unknown): void
}

/** Exclusive work on the file: runs after all earlier writes, and later ones wait for it. */
interface ExclusiveWork {
  work(): Promise<unknown>
  /** The last work of this journal. */
  readonly last: boolean
  done(): void
  fail(error: unknown): void
}

interface Waiting {
  done(): void
  fail(error: unknown): void
}

/** The path and format of a journal. */
export interface Site {
  readonly name: string
  readonly path: string
  readonly format: Format
  readonly tailBytes: number
}

/** An open journal: its write queue, its file and its watchers. */
export class OpenJournal {
  readonly wakes = new Wakes()
  readonly #site: Site
  #log: Promise<JournalFile>
  /** The file once it is open; writes wait until then. */
  #ready: JournalFile | undefined
  #queue: (Item | ExclusiveWork)[] = []
  #scheduled = false
  #held = true
  #over = false
  #unsynced: Waiting[] = []
  #syncing: Promise<void> | undefined
  #users = 0
  /** The file could not be opened; the next use of the name retries. */
  broken = false
  usedAt = performance.now()

  constructor(site: Site) {
    this.#site = site
    this.#log = this.#open()
    this.#log.catch(ignored('callers get it; without one it must not end the process'))
  }

  get idle(): boolean {
    const used = this.#users > 0 || this.#queue.length > 0 || this.wakes.watchers.size > 0
    return !used && !this.#held && !this.#syncing
  }

  /** Pins the file for a reader, which releases it. */
  async pin(): Promise<{ log: JournalFile; release: () => void }> {
    this.#users++
    try {
      const log = await this.#log
      const unpin = log.pin()
      return { log, release: () => this.#leave(unpin) }
    } catch (error) {
      this.#leave()
      throw error
    }
  }

  /** Reads the current file, even if the journal is replaced meanwhile. */
  async use<T>(work: (log: JournalFile) => Promise<T>): Promise<T> {
    const { log, release } = await this.pin()
    try {
      return await work(log)
    } finally {
      release()
    }
  }

  append(addition: Addition, flush: boolean): Promise<number> {
    return new Promise((done, fail) => this.#ask({ ...addition, flush, done, fail }))
  }

  /** Replaces all entries. */
  rewrite(jsons: readonly string[]): Promise<void> {
    const { path, format } = this.#site
    const text = jsons.map((json, i) => format.entry(i + 1, json)).join('')
    return this.#exclusively(() => {
      failpoint('journal.rewrite')
      return replaceFile(path, Buffer.from(text))
    })
  }

  remove(): Promise<void> {
    const { path } = this.#site
    return this.#exclusively(async () => {
      if (!this.#ready?.exists) return
      await rm(path, { force: true })
      await flushFolder(dirname(path))
    })
  }

  /** Moves the file, replacing an existing one; does nothing if there is no file. */
  move(to: string): Promise<void> {
    const { path } = this.#site
    return this.#exclusively(async () => {
      if (!this.#ready?.exists) return
      await mkdir(dirname(to), { recursive: true, mode: 0o700 })
      // Makes the target folder durable first: losing it in a power cut would lose the moved file.
      await flushFolders(to)
      await rename(path, to)
      await flushFolder(dirname(to))
      await flushFolder(dirname(path))
    })
  }

  /** Writes the queue, flushes it to the disk, and ends all watchers. */
  shut(): Promise<void> {
    return this.broken ? Promise.resolve() : this.#exclusively(async () => this.#ready?.sync(), true)
  }

  /** Drops the file without a flush; only for a journal without users. */
  retire(): void {
    this.#ready?.retire()
    this.wakes.end()
  }

  #leave(unpin?: () => void): void {
    unpin?.()
    this.#users--
    this.usedAt = performance.now()
  }

  async #open(): Promise<JournalFile> {
    const { path, format, tailBytes } = this.#site
    try {
      const log = await JournalFile.open(path, format, tailBytes)
      this.#ready = log
      this.#held = false
      process.nextTick(this.#flush)
      return log
    } catch (error) {
      this.broken = true
      for (const item of this.#queue.splice(0)) item.fail(error)
      throw error
    }
  }

  #exclusively(work: () => Promise<unknown>, last = false): Promise<void> {
    return new Promise((done, fail) => this.#ask({ work, last, done, fail }))
  }

  #ask(item: Item | ExclusiveWork): void {
    if (this.broken || this.#over) return this.#refuse(item)
    this.usedAt = performance.now()
    this.#queue.push(item)
    if (this.#held || this.#scheduled) return
    this.#scheduled = true
    process.nextTick(this.#flush)
  }

  /** Writes the entries queued in one tick, in order, up to exclusive work. */
  readonly #flush = (): void => {
    this.#scheduled = false
    while (this.#queue.length > 0 && !this.#held) {
      const items: Item[] = []
      let next = this.#queue.shift()
      for (; next && !('work' in next); next = this.#queue.shift()) {
        items.push(next)
        if (next.end !== undefined) break
      }
      if (items.length > 0) this.#commit(items)
      if (next && 'work' in next) void this.#hold(next)
    }
  }

  #commit(items: readonly Item[]): void {
    const log = this.#ready
    if (!log || log.closed) {
      const sentence = `the journal ${this.#site.name} is closed and takes no more entries`
      for (const item of items) item.fail(new Refusal('conflict', sentence))
      return
    }
    try {
      failpoint('journal.append')
      const positions = log.append(items)
      failpoint('journal.append.written')
      items.forEach((item, i) => {
        const done = (): void => item.done(positions[i] ?? log.entries)
        if (item.flush) this.#unsynced.push({ done, fail: item.fail })
        else done()
      })
    } catch (error) {
      // The batch did not fit on the disk; single entries may.
      if (items.length === 1) return items[0]?.fail(error)
      for (const item of items) this.#commit([item])
      return
    }
    this.wakes.soon()
    if (log.closed && this.wakes.watchers.size === 0) log.clearCache()
    this.#sync()
  }

  /** Group commit: appends made during a sync are acknowledged by the next sync. */
  #sync(): void {
    const log = this.#ready
    if (this.#syncing || !log || this.#unsynced.length === 0) return
    const waiting = this.#unsynced
    this.#unsynced = []
    this.#syncing = log
      .sync()
      .then(
        () => (failpoint('journal.flushed'), waiting.forEach(({ done }) => done())),
        error => waiting.forEach(({ fail }) => fail(error)),
      )
      .finally(() => {
        this.#syncing = undefined
        this.#sync()
      })
  }

  async #hold({ work, last, done, fail }: ExclusiveWork): Promise<void> {
    this.#held = true
    while (this.#syncing) await this.#syncing
    try {
      await work()
      done()
    } catch (error) {
      fail(error)
      if (!last) {
        this.#held = false
        return this.#flush()
      }
    }
    this.retire()
    this.#over = last
    if (last) return this.#queue.splice(0).forEach(item => this.#refuse(item))
    this.#log = this.#open()
    this.#log.catch(ignored('callers get it; without one it must not end the process'))
  }

  #refuse(item: Item | ExclusiveWork): void {
    item.fail(new Refusal('unavailable', `the journal ${this.#site.name} is shut and takes nothing more`))
  }
}
