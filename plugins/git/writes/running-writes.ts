import { randomUUID } from 'node:crypto'
import type { Host } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { ignored } from '../../../sdk/index.js'

/** A write that has begun and not ended. */
export interface RunningWrite {
  readonly repo: string
  readonly verb: string
  readonly head?: string
  /** An operation that it leaves halted is aborted at the next start. */
  readonly aborts: boolean
}

/** The journal of running writes: those in it at a start were interrupted. */
export class RunningWrites {
  readonly #store: Host['store']
  readonly #now = new Set<string>()
  /** The interrupted writes of earlier daemons. */
  readonly #before: Promise<[string, RunningWrite][]>

  constructor(store: Host['store']) {
    this.#store = store
    this.#before = store.all<RunningWrite>()
    this.#before.catch(ignored('the caller that awaits it gets the failure'))
  }

  /** Records the beginning of a write; returns the function that records its end. */
  async begin(write: RunningWrite): Promise<() => Promise<void>> {
    const id = randomUUID()
    this.#now.add(id)
    await this.#store.set(id, write)
    failpoint('git.write.begun')
    return async () => {
      this.#now.delete(id)
      await this.#store.delete(id)
    }
  }

  /** The interrupted writes; `forget` ends one. */
  async cutOff(): Promise<[id: string, write: RunningWrite][]> {
    return (await this.#before).filter(([id]) => !this.#now.has(id))
  }

  forget(id: string): Promise<void> {
    return this.#store.delete(id)
  }
}
