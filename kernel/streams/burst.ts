/** The clock and timers of the stream, replaced in tests. */
export interface Clock {
  /** Monotonic milliseconds. */
  now(): number
  /** The time of day in Unix milliseconds. */
  time(): number
  /** Calls `run` after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void
}

/** The real clock; its timers do not keep the process alive. */
export const REAL: Clock = {
  now: () => performance.now(),
  time: Date.now,
  after: (ms, run) => {
    const timer = setTimeout(run, ms).unref()
    return () => clearTimeout(timer)
  },
}

/** The most ids listed in a change. */
const KEYS = 20

/** Paths that a caller must all reach to receive an id; undefined: not known. */
export type Within = readonly string[] | undefined

/** The changed ids of a domain, each with its paths if known; undefined: the ids are not known. */
export type MovedAccess = ReadonlyMap<string, Within> | undefined

/** Emits the first change of a burst at once, and all changes of the next `ms` milliseconds together. */
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

  /** @param key The changed id; absent: not known. */
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

/** The ids of all changes with their paths, if all are known and there are at most 20. */
export const few = (all: readonly MovedAccess[]): { keys?: ReadonlyMap<string, Within> } => {
  const keys = new Map(all.flatMap(each => [...(each ?? [])]))
  return all.every(Boolean) && keys.size <= KEYS ? { keys } : {}
}
