/** When to pause and resume the producer. */
export interface Flow<T> {
  /** The weight of an item; default: 1. */
  readonly weigh?: (item: T) => number
  /** The total weight above which the producer is paused. */
  readonly full: number
  /** The total weight below which the producer is resumed. */
  readonly room: number
  readonly pause: () => void
  readonly resume: () => void
}

/** A queue between a producer and a single reader, with back-pressure. */
export class Inbox<T> {
  readonly #flow: Flow<T>
  #waiting: T[] = []
  #next = 0
  #weight = 0
  #paused = false
  #over = false
  #wake: (() => void) | undefined

  constructor(flow: Flow<T>) {
    this.#flow = flow
  }

  put(item: T): void {
    if (this.#over) return
    this.#waiting.push(item)
    this.#weight += this.#flow.weigh?.(item) ?? 1
    if (!this.#paused && this.#weight > this.#flow.full) {
      this.#paused = true
      this.#flow.pause()
    }
    this.#wake?.()
  }

  /** Ends the queue; items in it can still be read. */
  end(): void {
    this.#over = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for (;;) {
      while (this.#next < this.#waiting.length) yield this.#take()
      if (this.#over) return
      await new Promise<void>(resolve => (this.#wake = resolve))
    }
  }

  #take(): T {
    const item = this.#waiting[this.#next++]!
    if (this.#next > 1024 || this.#next === this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#next)
      this.#next = 0
    }
    this.#weight -= this.#flow.weigh?.(item) ?? 1
    if (this.#paused && this.#weight < this.#flow.room) {
      this.#paused = false
      this.#flow.resume()
    }
    return item
  }
}
