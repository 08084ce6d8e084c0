import type { FileHandle } from 'node:fs/promises'
import { KEPT, older } from '../../sdk/node/logs/rotating-file.js'
import type { Catalogue } from './catalogue.js'
import { readAt } from './window.js'

const LINE_END = 0x0a
const MOST_READERS = 256
const MOST_PARTS = 8

/** The part of one file that somebody reads, or has read. */
export interface PartRead {
  /** Distinguishes a file from earlier ones of its name. */
  readonly file: string
  readonly from: number
  to: number
}

/** Where to resume a log. */
export interface Resumed {
  readonly file: FileHandle
  readonly at: number
  /** The last line read was removed. */
  readonly gone: boolean
}

/** Which file it is, whatever it is called by now. */
export const identityOf = async (file: FileHandle): Promise<string> => {
  const { dev, ino, birthtimeNs } = await file.stat({ bigint: true })
  return `${dev}:${ino}:${birthtimeNs}`
}

/**
 * The positions from which readers resume.
 *
 * The id of an event is an offset, and a rotated log has the same offsets again. So this remembers which file it was
 * in, while the daemon runs; afterwards the file is recognized by where its lines end.
 */
export class ResumePositions {
  /** By reader and log, the oldest first. */
  readonly #readers = new Map<string, readonly PartRead[]>()

  /** @param reader A person and a log. */
  reading(reader: string, part: PartRead): void {
    const before = this.#readers.get(reader) ?? []
    this.#readers.delete(reader)
    this.#readers.set(reader, [...before, part].slice(-MOST_PARTS))
    for (const first of this.#readers.keys()) {
      if (this.#readers.size <= MOST_READERS) break
      this.#readers.delete(first)
    }
  }

  /** Opens the file of a log in which a reader has seen everything before an offset. */
  async resume(catalogue: Pick<Catalogue, 'open'>, reader: string, name: string, offset: number): Promise<Resumed> {
    const seen = this.#readers.get(reader)?.findLast(({ from, to }) => from <= offset && offset <= to)?.file
    const files = [await catalogue.open(name)]
    try {
      for (let age = 1; age <= KEPT; age++) {
        const file = await catalogue.open(older(name, age)).catch(() => undefined)
        if (file) files.push(file)
      }
      const fits = await Promise.all(
        files.map(async file => (seen === undefined ? endsLine(file, offset) : (await identityOf(file)) === seen)),
      )
      // If the file is known to be removed, all existing lines are newer.
      const [at, file] = fits.includes(true)
        ? [offset, files[fits.indexOf(true)]!]
        : [0, seen === undefined ? files[0]! : files.at(-1)!]
      files.splice(files.indexOf(file), 1)
      return { file, at, gone: !fits.includes(true) }
    } finally {
      await Promise.all(files.map(file => file.close()))
    }
  }
}

const endsLine = async (file: FileHandle, offset: number): Promise<boolean> =>
  offset === 0 || (await readAt(file, offset - 1, 1))[0] === LINE_END
