import { close, constants, fdatasync, ftruncateSync, mkdirSync, openSync, read } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { writeAll, writeFailure } from '../files/disk.js'
import { failpoint } from '../failpoint.js'
import { flushFolders } from '../files/files.js'
import { codeOf } from '../files/paths.js'
import { entriesOf, PIECE, stretches, valuesOf } from './format.js'
import type { Format } from './format.js'
import { scan, STRIDE } from './scan.js'
import type { Mark } from './scan.js'
import { Tail } from './tail.js'

const readAt = promisify(read)
const syncData = promisify(fdatasync)

const ASK = constants.O_RDWR | constants.O_NOFOLLOW

/** One atomic append: entries as JSON, or the control events that close the journal. */
export interface Addition {
  readonly jsons: readonly string[]
  readonly end?: string | undefined
}

/** The file of a journal, with an index of its entries and a cache of its last bytes. */
export class JournalFile {
  readonly #path: string
  readonly #format: Format
  readonly #marks: Mark[] = []
  readonly #tail: Tail
  #fd: number | undefined
  #size = 0
  #entries = 0
  /** The end of the entries, where control events begin. */
  #dataEnd = 0
  #closed = false
  #gone = false
  /** The file has bytes after the last complete entry. */
  #torn = false
  /** The file's name is durable. Not assumed for an existing file, whose creator may not have flushed its folder. */
  #named = false
  #users = 0

  private constructor(path: string, format: Format, tail: Tail) {
    this.#path = path
    this.#format = format
    this.#tail = tail
  }

  /** Opens a file; if there is none, the first append creates it. */
  static async open(path: string, format: Format, tailBytes: number): Promise<JournalFile> {
    const fd = openExisting(path)
    if (fd === undefined) return new JournalFile(path, format, new Tail(tailBytes, 0))
    try {
      const found = await scan(fd, format)
      const log = new JournalFile(path, format, new Tail(tailBytes, found.size))
      log.#fd = fd
      log.#size = found.size
      log.#entries = found.entries
      log.#dataEnd = found.dataEnd
      log.#closed = found.closed
      log.#torn = found.torn
      log.#marks.push(...found.marks)
      return log
    } catch (error) {
      close(fd)
      throw error
    }
  }

  get exists(): boolean {
    return this.#fd !== undefined
  }

  get size(): number {
    return this.#size
  }

  get entries(): number {
    return this.#entries
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Whether the journal dropped this file: it was replaced, removed or closed. */
  get gone(): boolean {
    return this.#gone
  }

  /** Appends atomically and returns the last position of each addition; an error leaves the file unchanged. */
  append(additions: readonly Addition[]): number[] {
    const marks = this.#marks.length
    const positions: number[] = []
    let at = this.#size
    let entries = this.#entries
    let dataEnd: number | undefined
    let first = entries + 1
    let text = ''
    const put = (): void => {
      if (text === '') return
      const bytes = this.#tail.add(text)
      const fd = this.#writable()
      failpoint('journal.append.torn', () => writeAll(fd, bytes.subarray(0, bytes.length >> 1), at))
      writeAll(fd, bytes, at)
      const due = at - (this.#marks.at(-1)?.at ?? 0) >= STRIDE
      if (due && dataEnd === undefined) this.#marks.push({ position: first, at })
      at += bytes.length
      first = entries + 1
      text = ''
    }
    try {
      for (const { jsons, end } of additions) {
        for (const json of jsons) {
          text += this.#format.entry(++entries, json)
          if (text.length >= STRIDE) put()
        }
        if (end !== undefined) {
          put()
          dataEnd = at
          text = end
        }
        positions.push(entries)
      }
      put()
    } catch (error) {
      this.#marks.length = marks
      this.#tail.cut(this.#size)
      this.#torn = this.exists
      try {
        this.#mend()
      } catch {
        // The next append truncates it; until then nothing reads beyond the size.
      }
      throw writeFailure(error)
    }
    this.#size = at
    this.#entries = entries
    this.#dataEnd = dataEnd ?? at
    this.#closed = dataEnd !== undefined
    this.#tail.trim()
    return positions
  }

  /** Flushes appended entries to the disk, so that they survive a power cut. */
  async sync(): Promise<void> {
    if (this.#fd === undefined) return
    await syncData(this.#fd)
    if (this.#named) return
    await flushFolders(this.#path)
    this.#named = true
  }

  /** The offset after an entry; for a position not yet written, after the last one. */
  async offsetAfter(position: number): Promise<number> {
    if (position <= 0) return 0
    if (position >= this.#entries) return this.#dataEnd
    const near = this.#marks.findLast(mark => mark.position <= position + 1) ?? { position: 1, at: 0 }
    let left = position + 1 - near.position
    if (left === 0) return near.at
    for await (const { at, bytes } of stretches(this.bytes, near.at, this.#format.terminator)) {
      for (const [, end] of entriesOf(bytes, this.#format.terminator)) if (--left === 0) return at + end
    }
    return this.#dataEnd
  }

  /** Reads values from an offset on, in ranges; `next` is the offset of the next range. */
  async *values(from: number, damaged?: unknown): AsyncGenerator<{ values: unknown[]; next: number }> {
    for await (const { at, bytes } of stretches(this.bytes, from, this.#format.terminator)) {
      yield { values: valuesOf(bytes, this.#format, damaged), next: at + bytes.length }
    }
  }

  /** Reads bytes at an offset, from the cache if possible; never beyond the last complete entry. */
  readonly bytes = (at: number, most: number = PIECE): Buffer | Promise<Buffer> => {
    const held = this.recent(at)
    // An entry longer than a segment is read from the file.
    if (held && (held.length >= most || at + held.length === this.#size)) return held
    return this.#fileBytes(at, Math.max(0, Math.min(most, this.#size - at)))
  }

  /** Cached bytes from an offset to the end of a shared segment, if they are still cached. */
  recent(at: number): Buffer | undefined {
    return this.#tail.slice(at)
  }

  /** Clears the cache of a closed journal without watchers. */
  clearCache(): void {
    this.#tail.clear()
  }

  /** Drops the file; it stays open until the last pin is released. */
  retire(): void {
    this.#gone = true
    this.#release()
  }

  /** Keeps the file open until the returned function is called. */
  pin(): () => void {
    this.#users++
    return () => {
      this.#users--
      this.#release()
    }
  }

  async #fileBytes(at: number, length: number): Promise<Buffer> {
    if (length === 0 || this.#fd === undefined) return Buffer.alloc(0)
    const { bytesRead, buffer } = await readAt(this.#fd, Buffer.allocUnsafeSlow(length), 0, length, at)
    if (bytesRead < length) throw new Error(`${this.#path} holds less than was written to it`)
    return buffer
  }

  #release(): void {
    if (!this.#gone || this.#users > 0 || this.#fd === undefined) return
    close(this.#fd)
    this.#fd = undefined
    this.#tail.clear()
  }

  #writable(): number {
    if (this.#fd === undefined) {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 })
      this.#fd = openSync(this.#path, ASK | constants.O_CREAT, 0o600)
    }
    this.#mend()
    return this.#fd
  }

  #mend(): void {
    if (!this.#torn || this.#fd === undefined) return
    ftruncateSync(this.#fd, this.#size)
    this.#torn = false
  }
}

const openExisting = (path: string): number | undefined => {
  try {
    return openSync(path, ASK)
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return
    throw error
  }
}
