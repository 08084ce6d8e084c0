interface Waiter {
  readonly enter: () => void
}

/** A mutex per key within this process; waiters are served in order. */
export class KeyedMutex {
  /** The waiters of every held key. */
  readonly #queues = new Map<string, Waiter[]>()

  /** Whether the key is held now. */
  held(key: string): boolean {
    return this.#queues.has(key)
  }

  /** Waits for the key and returns its release function, which may be called twice. An aborted signal ends the wait. */
  async hold(key: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted()
    const queue = this.#queues.get(key)
    if (queue) await this.#wait(queue, signal)
    else this.#queues.set(key, [])
    let open = true
    return () => {
      if (!open) return
      open = false
      this.#next(key)
    }
  }

  /** Runs a function while holding the key. */
  async with<T>(key: string, work: () => Promise<T> | T, signal?: AbortSignal): Promise<T> {
    const release = await this.hold(key, signal)
    try {
      return await work()
    } finally {
      release()
    }
  }

  /** Resolves when all current holders and waiters are done. */
  async settled(): Promise<void> {
    await Promise.all([...this.#queues.keys()].map(key => this.with(key, () => {})))
  }

  #wait(queue: Waiter[], signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = () => {
      queue.splice(queue.indexOf(waiter), 1)
      reject(signal?.reason)
    }
    const waiter: Waiter = {
      enter: () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      },
    }
    signal?.addEventListener('abort', leave, { once: true })
    queue.push(waiter)
    return promise
  }

  #next(key: string): void {
    const waiter = this.#queues.get(key)?.shift()
    if (waiter) waiter.enter()
    else this.#queues.delete(key)
  }
}
