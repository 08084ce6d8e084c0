import { refuse, type Store } from '../../../../sdk/index.js'
import { KeyedMutex } from '../../../../sdk/node/concurrency/keyed-mutex.js'
import { cronTimes } from '../../../../sdk/node/extension/cron.js'
import type { HostHandlers } from '../operations.js'

/** A job that is due at a time; stored, so that a restart does not lose it. */
interface Due {
  readonly when: number
  readonly expression?: string
}

const MOST_KEYS = 100
/** The longest single timer: timers are limited, and the clock may change. */
const MOST_WAIT = 60_000

/** The scheduled work of one extension, while its backend runs. */
export class Schedule {
  readonly #store: Store
  readonly #key: string
  readonly #due: (key: string) => void
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #turns = new KeyedMutex()
  #ended = false

  constructor(store: Store, id: string, due: (key: string) => void) {
    this.#store = store
    this.#key = `schedule/${id}`
    this.#due = due
  }

  /** Schedules a job once. A stored one of this key that is overdue runs at once. */
  async at(key: string, when: number): Promise<void> {
    await this.#keep(key, { when })
  }

  /** Schedules a job repeatedly. */
  async cron(key: string, expression: string): Promise<void> {
    await this.#keep(key, { when: cronTimes(expression).next(Date.now()), expression })
  }

  end(): void {
    this.#ended = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
  }

  async #keep(key: string, due: Due): Promise<void> {
    await this.#turns.with('all', async () => {
      const all = await this.#all()
      const before = all[key]
      if (!before && Object.keys(all).length >= MOST_KEYS) refuse('too-many', `expected at most ${MOST_KEYS} keys`)
      const missed = before !== undefined && !this.#timers.has(key) && before.when <= Date.now()
      await this.#store.set(this.#key, { ...all, [key]: due })
      this.#arm(key, missed ? { ...due, when: Date.now() } : due, due)
    })
  }

  #arm(key: string, next: Due, kept: Due): void {
    if (this.#ended) return
    clearTimeout(this.#timers.get(key))
    const wait = Math.min(MOST_WAIT, Math.max(0, next.when - Date.now()))
    const tick = () => (Date.now() < next.when ? this.#arm(key, next, kept) : void this.#fire(key, next, kept))
    this.#timers.set(key, setTimeout(tick, wait).unref())
  }

  async #fire(key: string, { when }: Due, kept: Due): Promise<void> {
    this.#timers.delete(key)
    if (this.#ended) return
    this.#due(key)
    // Missed jobs run in addition to later ones.
    const after: Due | undefined =
      when < kept.when
        ? kept
        : kept.expression === undefined
          ? undefined
          : { ...kept, when: cronTimes(kept.expression).next(Date.now()) }
    await this.#turns.with('all', async () => {
      const { [key]: _, ...rest } = await this.#all()
      await this.#store.set(this.#key, after ? { ...rest, [key]: after } : rest)
      if (after && !this.#timers.has(key)) this.#arm(key, after, after)
    })
  }

  async #all(): Promise<{ [key: string]: Due }> {
    return (await this.#store.get<{ [key: string]: Due }>(this.#key)) ?? {}
  }
}

/** The operations that schedule work. */
export const scheduleOperations = (schedule: Schedule): Pick<HostHandlers, `schedule.${'at' | 'cron'}`> => ({
  'schedule.at': async ({ key, when }) => {
    await schedule.at(key, when)
    return {}
  },
  'schedule.cron': async ({ key, expression }) => {
    await schedule.cron(key, expression)
    return {}
  },
})
