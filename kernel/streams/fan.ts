import type { Clock } from './burst.js'

/** Readers notified before yielding to the event loop. */
const AT_ONCE = 100
/**
 * With more readers, the next round waits up to 25 ms after the last one, so that the changes of that time go out
 * together.
 */
const FEW = 200
const PER_MS = 40
const LONGEST_PAUSE = 25

/**
 * Notifies all readers of new data, in rounds of 100, so that many readers do not block the event loop.
 *
 * A reader notified late reads everything up to then.
 */
export class Fan<Reader> {
  readonly #readers: ReadonlySet<Reader>
  readonly #notify: (reader: Reader) => void
  readonly #clock: Pick<Clock, 'after'>
  #busy = false
  #again = false

  constructor(readers: ReadonlySet<Reader>, notify: (reader: Reader) => void, clock: Pick<Clock, 'after'>) {
    this.#readers = readers
    this.#notify = notify
    this.#clock = clock
  }

  /** Notifies all readers; calls during a round cause one more round. */
  wake(): void {
    if (this.#busy) {
      this.#again = true
      return
    }
    const { size } = this.#readers
    if (size <= AT_ONCE) return this.#readers.forEach(this.#notify)
    this.#busy = true
    this.#round([...this.#readers], 0)
  }

  #round(readers: readonly Reader[], from: number): void {
    const to = from + AT_ONCE
    for (const reader of readers.slice(from, to)) if (this.#readers.has(reader)) this.#notify(reader)
    if (to < readers.length) return void setImmediate(() => this.#round(readers, to))
    this.#clock.after(readers.length > FEW ? Math.min(LONGEST_PAUSE, readers.length / PER_MS) : 0, () => {
      this.#busy = false
      if (!this.#again) return
      this.#again = false
      this.wake()
    })
  }
}
