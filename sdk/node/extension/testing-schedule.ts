import { cronTimes } from './cron.js'
import type { Off } from './host.js'
import type { HostOperations, OperationInput } from './protocol.js'

/** Work that is due at a time of the test. */
interface Scheduled {
  /** In ms since the beginning of the test, as the test moves its clock. */
  readonly at: number
  /** The time after this one; undefined: it runs once. */
  readonly next?: (at: number) => number
  readonly run: () => unknown
}

/** The scheduled work of one test: it runs when the test moves the clock, and never by itself. */
export class TestedSchedule {
  readonly #began = Date.now()
  readonly #all = new Map<string | symbol, Scheduled>()
  readonly #due: (key: string) => Promise<unknown>
  #now = 0

  constructor(due: (key: string) => Promise<unknown>) {
    this.#due = due
  }

  /** Repeats work; stands in for a timer of the process. */
  every(work: () => void, ms: number): Off {
    const key = Symbol('every')
    this.#all.set(key, { at: this.#now + ms, next: at => at + ms, run: work })
    return () => void this.#all.delete(key)
  }

  at({ key, when }: OperationInput<HostOperations, 'schedule.at'>): void {
    this.#all.set(key, { at: this.#now + Math.max(0, when - Date.now()), run: () => this.#due(key) })
  }

  cron({ key, expression }: OperationInput<HostOperations, 'schedule.cron'>): void {
    const times = cronTimes(expression)
    const next = (at: number) => times.next(this.#began + at) - this.#began
    this.#all.set(key, { at: next(this.#now), next, run: () => this.#due(key) })
  }

  /** Moves the clock on, and runs what is due until then in its order. */
  async tick(ms: number): Promise<void> {
    const end = this.#now + ms
    for (;;) {
      const [first] = [...this.#all].sort(([, one], [, other]) => one.at - other.at)
      if (!first || first[1].at > end) break
      const [key, work] = first
      this.#now = Math.max(this.#now, work.at)
      if (work.next) this.#all.set(key, { ...work, at: work.next(work.at) })
      else this.#all.delete(key)
      await work.run()
    }
    this.#now = end
  }
}
