/** Time, as far as the stream depends on it. */
export interface Clock {
  /** Milliseconds that only ever grow, however the clock on the wall is set. */
  now(): number
  /** The time of day, for others to read. */
  time(): number
  /** Runs something later, unless the answer is called before. */
  after(ms: number, run: () => void): () => void
}

/** The clock of the machine; its timers keep no process up. */
export const REAL: Clock = {
  now: () => performance.now(),
  time: Date.now,
  after: (ms, run) => {
    const timer = setTimeout(run, ms).unref()
    return () => clearTimeout(timer)
  },
}

/** The most ids a change names. */
const KEYS = 20

/** Places of which somebody must reach all; undefined: not known. */
export type Within = readonly string[] | undefined

/**
 * The ids that moved in a domain, each with its places where they are known; undefined: which ones moved is not known.
 */
export type MovedAccess = ReadonlyMap<string, Within> | undefined

/** Lets the first of a burst out at once, and what follows within a while together at its end. */
export class Burst {
  readonly #clock: Clock
  readonly #ms: number
  readonly #out: (changed: ReadonlyMap<string, MovedAccess>) => void
  #changed = new Map<string, Map<string, Within> | undefined>()
  #open = false

  constructor(clock: Clock, ms: number, out: (changed: ReadonlyMap<string, MovedAccess>) => void) {
    this.#clock = clock
    this.#ms = ms
    this.#out = out
  }

  /** @param key Left out: which one changed is not known. */
  add(domain: string, key?: string, within?: Within): void {
    const keys = this.#changed.has(domain) ? this.#changed.get(domain) : new Map<string, Within>()
    this.#changed.set(domain, key === undefined ? undefined : keys?.set(key, within))
    if (!this.#open) this.#flush()
  }

  #flush(): void {
    const changed = this.#changed
    this.#changed = new Map()
    this.#open = true
    this.#clock.after(this.#ms, () => {
      this.#open = false
      if (this.#changed.size) this.#flush()
    })
    this.#out(changed)
  }
}

/** The keys of all with their places, where every one is known and they are few. */
export const few = (all: readonly MovedAccess[]): { keys?: ReadonlyMap<string, Within> } => {
  const keys = new Map(all.flatMap(each => [...(each ?? [])]))
  return all.every(Boolean) && keys.size <= KEYS ? { keys } : {}
}
