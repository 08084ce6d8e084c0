import { setTimeout as delay } from 'node:timers/promises'
import { refuse } from '../../sdk/index.js'

const SECOND = 1000

/** Limits how many bytes all downloads together take in a second. */
export class ByteRate {
  readonly #most: number
  #since = 0
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Refuses a download that begins while this second's bytes are spent. */
  assertFree(): void {
    this.#turn()
    if (this.#taken >= this.#most)
      refuse('too-many', 'too much is downloaded at this moment; ask again in 1 s', { retryAfter: 1 })
  }

  /** Waits until so many bytes may be sent. */
  async take(bytes: number): Promise<void> {
    while (this.#taken >= this.#most && this.#turn()) await delay(this.#since + SECOND - performance.now())
    this.#taken += bytes
  }

  /** Begins the next second if it is time; whether this one's bytes are spent. */
  #turn(): boolean {
    const now = performance.now()
    if (now - this.#since >= SECOND) {
      this.#since = now
      this.#taken = 0
    }
    return this.#taken >= this.#most
  }
}
