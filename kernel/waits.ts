import { refuse } from '../sdk/refusal.js'
import { ignored } from '../sdk/ignored.js'

/** Records which groups wait for others to start, so that a cycle is refused instead of deadlocking. */
export class Waits {
  readonly #waiting = new Map<string, Set<string>>()

  /** Marks a group as starting until the work ends. */
  async during<T>(group: string, work: Promise<T>): Promise<T> {
    this.#waiting.set(group, new Set())
    try {
      return await work
    } finally {
      this.#waiting.delete(group)
    }
  }

  /** Waits until a group has started; refuses when its start itself waits for the start of `by`. */
  async wait(by: string | undefined, group: string, start: Promise<void>): Promise<void> {
    const mine = by === undefined ? undefined : this.#waiting.get(by)
    if (!mine) return start
    if (this.#needs(group, by!)) {
      void start.catch(ignored('the caller that awaits it gets the failure'))
      refuse('unavailable', `${group} is not started yet, and needs ${by} to start`)
    }
    mine.add(group)
    try {
      await start
    } finally {
      mine.delete(group)
    }
  }

  #needs(group: string, other: string): boolean {
    return group === other || [...(this.#waiting.get(group) ?? [])].some(next => this.#needs(next, other))
  }
}
