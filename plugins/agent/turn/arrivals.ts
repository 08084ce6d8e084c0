/** Who waits for a run that is queued, until it starts or is withdrawn. */
export class Arrivals<T> {
  readonly #waiting = new Map<string, Set<(arrived: T | undefined) => void>>()

  /** Tells everybody who waits for a run that it has started; without a second argument, that it never does. */
  settle(run: string, arrived?: T): void {
    const waiting = this.#waiting.get(run)
    this.#waiting.delete(run)
    for (const tell of waiting ?? []) tell(arrived)
  }

  /** Waits for a run; undefined if it never starts, or when the signal is aborted. */
  async wait(run: string, signal: AbortSignal): Promise<T | undefined> {
    const { promise, resolve } = Promise.withResolvers<T | undefined>()
    const waiting = this.#waiting.get(run) ?? new Set()
    this.#waiting.set(run, waiting.add(resolve))
    const leave = () => resolve(undefined)
    signal.addEventListener('abort', leave, { once: true })
    const arrived = await promise
    signal.removeEventListener('abort', leave)
    waiting.delete(resolve)
    if (waiting.size === 0 && this.#waiting.get(run) === waiting) this.#waiting.delete(run)
    return arrived
  }
}
