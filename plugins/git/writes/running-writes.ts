import { randomUUID } from 'node:crypto'
import type { Host } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'

/** A write that has begun and not ended. */
export interface RunningWrite {
  readonly repo: string
  readonly verb: string
  readonly head?: string
  /** A halted operation that it leaves behind is aborted at the next start. */
  readonly aborts: boolean
}

/** The journal of writes: what is in it at a start was cut off. */
export class RunningWrites {
  readonly #store: Host['store']
  readonly #now = new Set<string>()
  /** What an earlier daemon left. */
  readonly #before: Promise<[string, RunningWrite][]>

  constructor(store: Host['store']) {
    this.#store = store
    this.#before = store.all<RunningWrite>()
    this.#before.catch(() => {})
  }

  /** Notes that a write begins; answers what notes its end. */
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

  /** The writes that were cut off, each to be ended by `forget`. */
  async cutOff(): Promise<[id: string, write: RunningWrite][]> {
    return (await this.#before).filter(([id]) => !this.#now.has(id))
  }

  forget(id: string): Promise<void> {
    return this.#store.delete(id)
  }
}
