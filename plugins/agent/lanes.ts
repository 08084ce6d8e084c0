/** Work that must not overlap, by key: what is asked for one key runs in the order it was asked. */
export class Lanes {
  readonly #tails = new Map<string, Promise<unknown>>()

  run<T>(key: string, work: () => Promise<T> | T): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve()
    const mine = before.then(work, work)
    const tail = mine.catch(() => {}).finally(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    })
    this.#tails.set(key, tail)
    return mine
  }

  /** Takes the lane until the function it answers is called; refused when the signal aborts first. */
  async hold(key: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    const held = Promise.withResolvers<void>()
    const turn = Promise.withResolvers<void>()
    const giveUp = () => {
      held.resolve()
      turn.reject(signal.reason)
    }
    signal.addEventListener('abort', giveUp, { once: true })
    void this.run(key, () => {
      turn.resolve()
      return held.promise
    })
    await turn.promise
    signal.removeEventListener('abort', giveUp)
    return held.resolve
  }
}
