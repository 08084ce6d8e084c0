import { refuse } from '../../sdk/index.js'

const MINUTE = 60_000

/** Allows something a number of times a minute. */
export class MinuteLimit {
  readonly #most: number
  #times: number[] = []

  constructor(most: number) {
    this.#most = most
  }

  /** Counts one more time, or refuses it with a message. */
  take(message: string): void {
    const now = performance.now()
    this.#times = this.#times.filter(at => now - at < MINUTE)
    if (this.#times.length >= this.#most)
      refuse('too-many', message, { retryAfter: Math.ceil((this.#times[0]! + MINUTE - now) / 1_000) })
    this.#times.push(now)
  }
}
