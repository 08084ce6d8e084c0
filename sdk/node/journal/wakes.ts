const FEW = 200
const GAP = 4
const GAP_OF_MANY = 10

/** A watcher at the end of a journal. */
export interface Sleeper {
  wake(): void
  /** Writes these bytes where an entry may begin, and ends. */
  interrupt?(bytes: Buffer): void
}

/** Wakes the watchers at the end of a journal: at once after a pause, in batches while many entries arrive. */
export class Wakes {
  /** All watchers of the journal, waiting or not. */
  readonly watchers = new Set<Sleeper>()
  #waiting = new Set<Sleeper>()
  #timer: NodeJS.Timeout | undefined
  #last = -Infinity

  wait(sleeper: Sleeper): void {
    this.#waiting.add(sleeper)
  }

  leave(sleeper: Sleeper): void {
    this.#waiting.delete(sleeper)
    this.watchers.delete(sleeper)
  }

  /** Resolves when there are new entries, the signal is aborted, or the file is replaced. */
  async more(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = (): void => resolve()
    const sleeper = { wake }
    signal.addEventListener('abort', wake)
    this.watchers.add(sleeper)
    this.wait(sleeper)
    await promise
    signal.removeEventListener('abort', wake)
    this.leave(sleeper)
  }

  /** Wakes waiting watchers because there are new entries. */
  soon(): void {
    if (this.#waiting.size === 0) return
    const gap = this.watchers.size > FEW ? GAP_OF_MANY : GAP
    const left = this.#last + gap - performance.now()
    // A timer alone would starve if the producer never yields to the event loop.
    if (left <= 0) return this.now()
    this.#timer ??= setTimeout(this.now, left)
  }

  readonly now = (): void => {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#last = performance.now()
    const woken = this.#waiting
    this.#waiting = new Set()
    for (const sleeper of woken) sleeper.wake()
  }

  /** Wakes all watchers because the file was dropped. */
  end(): void {
    this.now()
    for (const sleeper of [...this.watchers]) sleeper.wake()
  }
}
