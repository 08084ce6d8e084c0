import { constants } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { JournalStore } from '../../sdk/node/journal/journal-store.js'
import { codeOf } from '../../sdk/node/files/paths.js'

const END = '.jsonl'
const NAME = /^(\d{4}-\d\d-\d\d)(?:\.(\d{4}))?$/
/** The bytes read and checked at a time, so that other work is not delayed. */
const WINDOW = 128 * 1024
const LINE_END = 0x0a

/** The record on the disk: one file per day, and a further one when a file is full or damaged. */
export class Segments {
  readonly #kind: string
  readonly #folder: string
  readonly #journals: JournalStore

  /** @param folder The group's own folder, which no turn sees. */
  constructor(folder: string, kind: 'days' | 'kept') {
    this.#kind = kind
    this.#folder = join(folder, kind)
    this.#journals = new JournalStore(folder)
  }

  /** The segments there are, oldest first. */
  async names(): Promise<string[]> {
    const found = await readdir(this.#folder).catch(error => {
      if (codeOf(error) === 'ENOENT') return [] as string[]
      throw error
    })
    return found
      .filter(name => name.endsWith(END))
      .map(name => name.slice(0, -END.length))
      .filter(name => NAME.test(name))
      .sort()
  }

  /** Appends entries in one step; they survive a power cut when this returns. */
  async append(name: string, entries: readonly object[]): Promise<void> {
    await this.#journals.append(`${this.#kind}/${name}`, entries, { flush: true })
  }

  /** Replaces a segment atomically. */
  async replace(name: string, entries: readonly object[]): Promise<void> {
    await this.#journals.rewrite(`${this.#kind}/${name}`, entries)
  }

  async size(name: string): Promise<number> {
    return (await stat(this.#path(name))).size
  }

  async remove(name: string): Promise<void> {
    await this.#journals.remove(`${this.#kind}/${name}`)
  }

  /** The whole lines of a segment in stretches, oldest first; a torn last one is left out. */
  async *forwards(name: string): AsyncGenerator<Buffer> {
    await using file = await open(this.#path(name), constants.O_RDONLY | constants.O_NOFOLLOW)
    for (let at = 0, rest = Buffer.alloc(0); ;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafeSlow(WINDOW), 0, WINDOW, at)
      if (bytesRead === 0) return
      at += bytesRead
      const bytes = Buffer.concat([rest, buffer.subarray(0, bytesRead)])
      const end = bytes.lastIndexOf(LINE_END) + 1
      rest = bytes.subarray(end)
      if (end > 0) yield bytes.subarray(0, end)
    }
  }

  /** The same from the end: stretches newest first, the lines of each in their order. */
  async *backwards(name: string): AsyncGenerator<Buffer> {
    await using file = await open(this.#path(name), constants.O_RDONLY | constants.O_NOFOLLOW)
    let { size: at } = await file.stat()
    // What lies before the first line's beginning in one stretch ends the next one.
    let rest: Buffer | undefined
    while (at > 0) {
      const length = Math.min(WINDOW, at)
      at -= length
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafeSlow(length), 0, length, at)
      const read = buffer.subarray(0, bytesRead)
      const bytes = rest ? Buffer.concat([read, rest]) : read.subarray(0, read.lastIndexOf(LINE_END) + 1)
      const begin = at === 0 ? 0 : bytes.indexOf(LINE_END) + 1
      rest = bytes.subarray(0, begin)
      if (bytes.length > begin) yield bytes.subarray(begin)
    }
  }

  close(): Promise<void> {
    return this.#journals.shutdown()
  }

  #path(name: string): string {
    return join(this.#folder, name + END)
  }
}

/** The texts of a stretch's lines. */
export const segmentLines = (bytes: Buffer): string[] => bytes.toString('utf8').split('\n').slice(0, -1)

/** Years have four digits, so that days are in the order of their names. */
const LAST_DAY = Date.UTC(9999, 11, 31)

/** The day of a moment, as segments are named; of one out of every calendar, the nearest. */
export const dayOf = (at: number): string => new Date(Math.min(Math.max(at, 0), LAST_DAY)).toISOString().slice(0, 10)

/** The day a segment is of. */
export const dayNamed = (name: string): string => name.slice(0, 10)

/** The segment that follows one of the same day. */
export const nextPart = (name: string): string =>
  `${dayNamed(name)}.${String(Number(NAME.exec(name)?.[2] ?? 1) + 1).padStart(4, '0')}`
