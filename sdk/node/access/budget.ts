import { refuse } from '../../refusal.js'

const MINUTE = 60_000
const KEYS = 10_000

/** Limits how many requests each address, or whatever else a key names, may make per minute. */
export class Budget {
  readonly #limit: number
  readonly #now: () => number
  readonly #whose: string
  readonly #asked = new Map<string, { since: number; times: number }>()

  /** @param whose Names the keys in the refusal. */
  constructor(limit: number, now: () => number = Date.now, whose = 'from one address') {
    this.#limit = limit
    this.#now = now
    this.#whose = whose
  }

  spend(address: string): void {
    const now = this.#now()
    const found = this.#asked.get(address)
    const current = found && now >= found.since && now - found.since < MINUTE ? found : { since: now, times: 0 }
    if (current.times >= this.#limit) {
      const retryAfter = Math.max(1, Math.ceil((current.since + MINUTE - now) / 1000))
      const message = `expected at most ${this.#limit} requests a minute ${this.#whose}; ask again in ${retryAfter} s`
      refuse('too-many', message, { retryAfter })
    }
    this.#asked.delete(address)
    this.#asked.set(address, { since: current.since, times: current.times + 1 })
    if (this.#asked.size > KEYS) this.#asked.delete(this.#asked.keys().next().value!)
  }
}
