/** Limits the number of concurrent tasks; further ones wait in order. */
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
      // Hands the slot to the next waiting task.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
