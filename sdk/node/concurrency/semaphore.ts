/** Runs at most a number of tasks at once; the others wait in the order in which they came. */
export class Semaphore {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
    try {
      return await task()
    } finally {
      // A task that waits takes this one's place.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
