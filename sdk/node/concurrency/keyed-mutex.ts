interface Waiter {
  readonly enter: () => void
}

/** Locks by key within this process: one holder at a time, served in the order of asking. */
export class KeyedMutex {
  /** The waiters of every key that is held. */
  readonly #queues = new Map<string, Waiter[]>()

  /** Whether somebody holds the key now. */
  held(key: string): boolean {
    return this.#queues.has(key)
  }

  /** Waits for the key and answers its release, which may be called twice; an aborted waiter leaves the queue. */
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

  /** Resolves when everyone who has asked so far is done. */
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
