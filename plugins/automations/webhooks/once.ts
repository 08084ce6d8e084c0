import type { Store } from '../../../sdk/index.js'
import type { WebhookFired } from '../contract.js'

interface Answered {
  readonly at: number
  readonly answer: WebhookFired
}

const KEY = 'once/'
const KEPT_MS = 24 * 3_600_000

/** The first answer to each sender's key, for a day. */
export class FirstAnswers {
  readonly #store: Pick<Store, 'set' | 'delete'>
  readonly #now: () => number
  readonly #answers = new Map<string, Answered>()

  constructor(store: Pick<Store, 'set' | 'delete'>, now: () => number) {
    this.#store = store
    this.#now = now
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    const found = documents.filter(([key]) => key.startsWith(KEY))
    for (const [key, value] of found) this.#answers.set(key.slice(KEY.length), value as Answered)
  }

  of(key: string): WebhookFired | undefined {
    const known = this.#answers.get(key)
    return known && known.at > this.#now() - KEPT_MS ? known.answer : undefined
  }

  async keep(key: string, answer: WebhookFired): Promise<void> {
    const at = this.#now()
    await this.#store.set(KEY + key, { at, answer } satisfies Answered)
    this.#answers.set(key, { at, answer })
    await this.#prune(at)
  }

  /** Deletes what is too old; the oldest come first. */
  async #prune(now: number): Promise<void> {
    for (const [key, { at }] of this.#answers) {
      if (at > now - KEPT_MS) return
      this.#answers.delete(key)
      await this.#store.delete(KEY + key)
    }
  }
}
