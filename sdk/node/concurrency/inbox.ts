/** When the producer is asked to pause, and to go on. */
export interface Flow<T> {
  /** What an item weighs; 1 where left out. */
  readonly weigh?: (item: T) => number
  /** The weight over which too much waits. */
  readonly full: number
  /** The weight under which there is room again. */
  readonly room: number
  readonly pause: () => void
  readonly resume: () => void
}

/** Items that one side puts in as they come and the other, a single reader, takes in that order at its own pace. */
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

  /** Nothing more comes; what waits can still be taken. */
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
