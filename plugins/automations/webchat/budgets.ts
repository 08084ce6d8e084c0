import { refuse, type Store } from '../../../sdk/index.js'
import { Budget } from '../../../sdk/node/access/budget.js'

interface DayCount {
  readonly day: string
  readonly messages: number
}

const DAY_KEY = 'chatday/'
const DAY_MS = 86_400_000
const DEFAULT_DAY = 200

/** What visitors may use up: in a minute by address and thread, and in a day by automation. */
export class VisitorBudgets {
  readonly config: Budget
  readonly challenge: Budget
  readonly stream: Budget
  readonly #message: Budget
  readonly #thread: Budget
  readonly #now: () => number
  readonly #store: Pick<Store, 'set' | 'delete'>
  readonly #days = new Map<string, DayCount>()

  constructor(store: Pick<Store, 'set' | 'delete'>, now: () => number) {
    this.#store = store
    this.#now = now
    this.config = new Budget(60, now)
    this.challenge = new Budget(30, now)
    this.stream = new Budget(60, now)
    this.#message = new Budget(60, now)
    this.#thread = new Budget(20, now, 'in one thread')
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    const found = documents.filter(([key]) => key.startsWith(DAY_KEY))
    for (const [key, value] of found) this.#days.set(key.slice(DAY_KEY.length), value as DayCount)
  }

  spendMinute(address: string, thread: string): void {
    this.#message.spend(address)
    this.#thread.spend(thread)
  }

  /** The part of a day's messages that is used. */
  used(id: string, most: number = DEFAULT_DAY): number {
    return this.#today(id).messages / most
  }

  /** Counts a message of today; it is durable when this returns. */
  async spendDay(id: string, most: number = DEFAULT_DAY): Promise<void> {
    const { day, messages } = this.#today(id)
    const now = this.#now()
    if (messages >= most)
      refuse('too-many', 'no further message can be taken today: try again tomorrow', {
        retryAfter: Math.ceil((DAY_MS - (now % DAY_MS)) / 1000),
      })
    const next = { day, messages: messages + 1 }
    this.#days.set(id, next)
    await this.#store.set(DAY_KEY + id, next)
  }

  async forget(id: string): Promise<void> {
    this.#days.delete(id)
    await this.#store.delete(DAY_KEY + id)
  }

  #today(id: string): DayCount {
    const day = new Date(this.#now()).toISOString().slice(0, 10)
    const known = this.#days.get(id)
    return known?.day === day ? known : { day, messages: 0 }
  }
}
