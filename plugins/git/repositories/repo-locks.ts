import { refuse } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { HeldInfo } from '../records.js'

interface Holding {
  readonly by: string
  readonly since: number
}

const WAIT_MS = 60_000

/**
 * One lock for each repository, by the git dir that its worktrees share: granted in request order, with the name
 * of the holder. A write waits at most 60 s.
 */
export class RepoLocks {
  readonly #mutex = new KeyedMutex()
  readonly #holders = new Map<string, Holding>()
  readonly #waiting = new Map<string, number>()

  /** The current holder of a repository, and the number of waiting writes. */
  held(common: string): HeldInfo | undefined {
    const holder = this.#holders.get(common)
    return holder && { ...holder, queued: this.#waiting.get(common) ?? 0 }
  }

  /** Waits for a repository and returns its release; a caller that disconnects leaves the queue. */
  async hold(common: string, by: string, signal: AbortSignal, waitMs = WAIT_MS): Promise<() => void> {
    const late = AbortSignal.timeout(waitMs)
    this.#count(common, 1)
    let release: () => void
    try {
      release = await this.#mutex.hold(common, AbortSignal.any([signal, late]))
    } catch (error) {
      const held = this.held(common)
      if (signal.aborted || !late.aborted) throw error
      return refuse(
        'conflict',
        `${held?.by ?? 'another write'} holds the repository for more than ${waitMs / 1000} s`,
        {
          ...(held && { fields: { held } }),
        },
      )
    } finally {
      this.#count(common, -1)
    }
    const holding = { by, since: Date.now() }
    this.#holders.set(common, holding)
    return () => {
      if (this.#holders.get(common) === holding) this.#holders.delete(common)
      release()
    }
  }

  /** Runs a write while holding a repository. */
  async with<T>(common: string, by: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const release = await this.hold(common, by, signal)
    try {
      return await work()
    } finally {
      release()
    }
  }

  #count(common: string, add: number): void {
    const waiting = (this.#waiting.get(common) ?? 0) + add
    if (waiting === 0) this.#waiting.delete(common)
    else this.#waiting.set(common, waiting)
  }
}
