const KEYS = 10_000

/**
 * Counts failures, or what else is limited, by key in a sliding window. Memory is bounded: the least recently used keys
 * are dropped first.
 */
export class Failures {
  readonly #limit: number
  readonly #window: number
  readonly #now: () => number
  readonly #times = new Map<string, number[]>()

  constructor(limit: number, window: number, now: () => number) {
    this.#limit = limit
    this.#window = window
    this.#now = now
  }

  /** Seconds to wait when the key is over its limit; otherwise undefined. */
  wait(key: string): number | undefined {
    const times = this.#recent(key)
    return times.length < this.#limit ? undefined : secondsUntil(times[0]! + this.#window, this.#now())
  }

  add(key: string): void {
    const times = [...this.#recent(key), this.#now()].slice(-this.#limit)
    this.#times.delete(key)
    this.#times.set(key, times)
    if (this.#times.size > KEYS) this.#times.delete(this.#times.keys().next().value!)
  }

  #recent(key: string): number[] {
    const now = this.#now()
    // Ignores times in the future, noted before the clock was set back: they would block the key for too long.
    return (this.#times.get(key) ?? []).filter(time => time > now - this.#window && time <= now)
  }
}

/** Whole seconds until a moment, at least 1, for `retry-after`. */
export const secondsUntil = (end: number, now: number): number => Math.max(1, Math.ceil((end - now) / 1000))
