import type { Host } from '../../sdk/index.js'
import type { Snapshot } from './contract.js'

/** A stored point: the tree of every repository, and the changes since the previous point. */
export interface StoredPoint extends Snapshot {
  /** The tree of each repository of that time. */
  trees: { [scope: string]: string }
  /** Changed paths from the workspace root, as far as they were noted. */
  touched: string[]
  /** More paths changed than were noted. */
  more?: true
}

const JOURNAL = 'points'
const DAY = 86_400_000
const HOUR = 3_600_000
const LISTED_DAYS = 90
const LEAST_LISTED = 200
const LEAST_FOR_ROOM = 10
const SHARE_FOR_ROOM = 4

/** The list of saved points, oldest first, in memory and in a journal. */
export class PointList {
  readonly #journal: Host['journal']
  #points: StoredPoint[] = []

  constructor(journal: Host['journal']) {
    this.#journal = journal
  }

  async load(): Promise<void> {
    const damaged = { damaged: {} }
    const read = await this.#journal.read<Partial<StoredPoint>>(JOURNAL, 0, damaged)
    this.#points = read.filter((point): point is StoredPoint => point.id !== undefined && point.trees !== undefined)
  }

  get all(): readonly StoredPoint[] {
    return this.#points
  }

  get last(): StoredPoint | undefined {
    return this.#points.at(-1)
  }

  find(id: string): StoredPoint | undefined {
    return this.#points.find(point => point.id === id)
  }

  /** The previous listed point, or on request the previous one of any kind. */
  before(point: StoredPoint, listedOnly: boolean): StoredPoint | undefined {
    const at = this.#points.indexOf(point)
    return this.#points.slice(0, at).findLast(({ trigger }) => !listedOnly || trigger !== 'interval')
  }

  async add(point: StoredPoint): Promise<void> {
    await this.#journal.append(JOURNAL, [point], { flush: true })
    this.#points.push(point)
  }

  /** Drops points that are too old; returns whether any was dropped. */
  dropOld(now: number): Promise<boolean> {
    return this.#keep(remaining(this.#points, now))
  }

  /** Drops a part of the points to make room; returns whether any could be dropped. */
  dropForRoom(): Promise<boolean> {
    return this.#keep(withRoom(this.#points))
  }

  async #keep(kept: StoredPoint[]): Promise<boolean> {
    if (kept.length === this.#points.length) return false
    await this.#journal.rewrite(JOURNAL, kept)
    this.#points = kept
    return true
  }
}

/**
 * The points to keep: listed ones for 90 days and at least the newest 200, those of the timer for a day, then one an
 * hour for 7 days.
 */
export const remaining = (points: readonly StoredPoint[], now: number): StoredPoint[] => {
  const listed = points.filter(({ trigger }) => trigger !== 'interval')
  const newest = new Set(listed.slice(-LEAST_LISTED))
  const hours = new Set<number>()
  return points.filter((point, at) => {
    const age = now - point.at
    if (at === points.length - 1 || newest.has(point)) return true
    if (point.trigger !== 'interval') return age <= LISTED_DAYS * DAY
    if (age <= DAY) return true
    const hour = Math.floor(point.at / HOUR)
    if (age > 7 * DAY || hours.has(hour)) return false
    hours.add(hour)
    return true
  })
}

/**
 * The points to keep where room is needed: without the oldest quarter of those of the timer, and where there are none,
 * of the listed ones. The newest ten listed points and the last point always stay.
 */
export const withRoom = (points: readonly StoredPoint[]): StoredPoint[] => {
  const earlier = points.slice(0, -1)
  const timed = earlier.filter(({ trigger }) => trigger === 'interval')
  const listed = points.filter(({ trigger }) => trigger !== 'interval').slice(0, -LEAST_FOR_ROOM)
  const candidates = timed.length > 0 ? timed : listed.filter(point => point !== points.at(-1))
  const gone = new Set(candidates.slice(0, Math.ceil(candidates.length / SHARE_FOR_ROOM)))
  return points.filter(point => !gone.has(point))
}
