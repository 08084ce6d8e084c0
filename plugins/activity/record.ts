import { BEGINNING, hashOfEntry, type ChainLink } from '../../sdk/node/record/chain.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import type { ActivityEvent } from './contract.js'
import type { Facts } from './entry.js'
import { dayNamed, dayOf, segmentLines, nextPart, type Segments } from './segments.js'

const MOST_SEGMENT = 8 * 1024 * 1024
const MOST_BATCH = 256

/** Where the record ends. */
export interface ChainHead extends Pick<ChainLink, 'seq' | 'hash'> {
  /** When its last entry was written; 0 where there is none. */
  readonly at: number
}

interface Waiting {
  readonly facts: Facts
  done(entry: ActivityEvent): void
  fail(error: unknown): void
}

interface Place {
  readonly name: string
  readonly bytes: number
}

/** The only writer of the record: appends each entry to the chain, and writes waiting entries to the disk together. */
export class Recorder {
  readonly #segments: Segments
  readonly #now: () => number
  #head: ChainHead
  /** The segment that takes the next entry, unless its day is over. */
  #place: Place | undefined
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined

  private constructor(segments: Segments, now: () => number, head: ChainHead, place: Place | undefined) {
    this.#segments = segments
    this.#now = now
    this.#head = head
    this.#place = place
  }

  /** Resumes the record at its end on the disk; `least` is the end it is known to have had. */
  static async open(segments: Segments, now: () => number, least?: Pick<ChainLink, 'seq' | 'hash'>): Promise<Recorder> {
    const { head, place } = await endOf(segments)
    return new Recorder(segments, now, least && least.seq > head.seq ? { ...least, at: head.at } : head, place)
  }

  /** The newest entry that survives a power cut. */
  get head(): ChainHead {
    return this.#head
  }

  /** The segment being written. */
  get segment(): string | undefined {
    return this.#place?.name
  }

  /** Adds an entry; it survives a power cut when this returns. */
  record(facts: Facts): Promise<ActivityEvent> {
    return new Promise((done, fail) => {
      this.#waiting.push({ facts, done, fail })
      this.#writing ??= this.#write()
    })
  }

  /** Waits until all submitted entries are written. */
  async idle(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  async #write(): Promise<void> {
    // Entries of the same tick share the first write.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MOST_BATCH)
      try {
        const entries = this.#chained(batch)
        const name = this.#placeFor(entries[0]!.at)
        await this.#segments.append(name, entries)
        failpoint('activity.recorded')
        const { seq, hash, at } = entries.at(-1)!
        this.#head = { seq, hash, at }
        this.#place = {
          name,
          bytes:
            (this.#place?.name === name ? this.#place.bytes : 0)
            + entries.reduce((sum, entry) => sum + JSON.stringify(entry).length, 0),
        }
        batch.forEach(({ done }, index) => done(entries[index]!))
      } catch (error) {
        batch.forEach(({ fail }) => fail(error))
        await this.#reopen()
      }
    }
    this.#writing = undefined
  }

  #chained(batch: readonly Waiting[]): ActivityEvent[] {
    let { seq, hash, at } = this.#head
    const now = this.#now()
    return batch.map(({ facts }) => {
      seq += 1
      at = Math.max(now, at + 1)
      const entry = { seq, at, id: `a-${seq}`, ...facts, prev: hash }
      hash = hashOfEntry(entry)
      return { ...entry, hash }
    })
  }

  /** An entry is in the segment of its day, except when one write spans midnight. */
  #placeFor(at: number): string {
    const day = dayOf(at)
    const place = this.#place
    if (!place || dayNamed(place.name) < day) return day
    return place.bytes < MOST_SEGMENT ? place.name : nextPart(place.name)
  }

  /** After a failed write it is unknown what is on the disk, so it is read. */
  async #reopen(): Promise<void> {
    try {
      const { head, place } = await endOf(this.#segments)
      if (head.seq > this.#head.seq) this.#head = head
      this.#place = place
    } catch {
      // The next write reports the error of the disk.
    }
  }
}

/**
 * The newest complete entry on the disk, and the segment to continue; a damaged end is kept and a further part begun.
 */
const endOf = async (segments: Segments): Promise<{ head: ChainHead; place: Place | undefined }> => {
  const names = await segments.names()
  let damaged = 0
  let place: Place | undefined
  for (const name of names.toReversed()) {
    const bytes = await segments.size(name)
    let sound = true
    for await (const stretch of segments.backwards(name)) {
      if (stretch.includes(0)) sound = false
      for (const line of segmentLines(stretch).reverse()) {
        const found = recordEntryOf(line)
        if (!found) {
          damaged += 1
          sound = false
          continue
        }
        place ??= { name: sound ? name : nextPart(name), bytes: sound ? bytes : 0 }
        return { head: { seq: found.seq + damaged, hash: found.hash, at: found.at }, place }
      }
    }
    place ??= { name: sound ? name : nextPart(name), bytes: sound ? bytes : 0 }
  }
  return { head: { seq: damaged, hash: BEGINNING, at: 0 }, place }
}

/** The entry a line holds, as far as one can tell by looking. */
export const recordEntryOf = (line: string): ActivityEvent | undefined => {
  try {
    const entry = JSON.parse(line) as Partial<ActivityEvent>
    const fits =
      Number.isSafeInteger(entry.seq)
      && Number.isSafeInteger(entry.at)
      && typeof entry.hash === 'string'
      && typeof entry.type === 'string'
    return fits ? (entry as ActivityEvent) : undefined
  } catch {
    return undefined
  }
}
