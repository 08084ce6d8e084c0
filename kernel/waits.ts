import { refuse } from '../sdk/refusal.js'

/** Which groups wait for which to start, so that a circle is refused and not waited for. */
export class Waits {
  readonly #waiting = new Map<string, Set<string>>()

  /** Counts a group as starting for as long as the work lasts. */
  async during<T>(group: string, work: Promise<T>): Promise<T> {
    this.#waiting.set(group, new Set())
    try {
      return await work
    } finally {
      this.#waiting.delete(group)
    }
  }

  /** Waits for a group's start on behalf of another; refused when that start waits for the other one's. */
  async wait(by: string | undefined, group: string, start: Promise<void>): Promise<void> {
    const mine = by === undefined ? undefined : this.#waiting.get(by)
    if (!mine) return start
    if (this.#needs(group, by!)) {
      void start.catch(() => {})
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
