import type { Clock } from './burst.js'

/** As many as are served without letting anything else run in between. */
const AT_ONCE = 100
/**
 * With more than that many, the next round begins a while after the last one: what comes meanwhile goes out together.
 */
const FEW = 200
const PER_MS = 40
const LONGEST_PAUSE = 25

/**
 * Tells everybody that there is more, in rounds, so that many readers hold up nothing else for long.
 *
 * Nobody misses a round: a watcher notified late is notified of everything until then.
 */
export class Fan<Reader> {
  readonly #readers: ReadonlySet<Reader>
  readonly #tell: (reader: Reader) => void
  readonly #clock: Pick<Clock, 'after'>
  #busy = false
  #again = false

  constructor(readers: ReadonlySet<Reader>, tell: (reader: Reader) => void, clock: Pick<Clock, 'after'>) {
    this.#readers = readers
    this.#tell = tell
    this.#clock = clock
  }

  /** There is more. */
  wake(): void {
    if (this.#busy) {
      this.#again = true
      return
    }
    const { size } = this.#readers
    if (size <= AT_ONCE) return this.#readers.forEach(this.#tell)
    this.#busy = true
    this.#round([...this.#readers], 0)
  }

  #round(readers: readonly Reader[], from: number): void {
    const to = from + AT_ONCE
    for (const reader of readers.slice(from, to)) if (this.#readers.has(reader)) this.#tell(reader)
    if (to < readers.length) return void setImmediate(() => this.#round(readers, to))
    this.#clock.after(readers.length > FEW ? Math.min(LONGEST_PAUSE, readers.length / PER_MS) : 0, () => {
      this.#busy = false
      if (!this.#again) return
      this.#again = false
      this.wake()
    })
  }
}
