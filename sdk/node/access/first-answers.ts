import { createHash } from 'node:crypto'
import type { Store } from '../../host.js'

interface Answered<T> {
  readonly at: number
  readonly answer: T
}

const DAY_MS = 24 * 3_600_000

/** A key of any texts, for the store. */
export const digest = (...texts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, 40)

/** The first answer to each sender's key, for a day unless another time is given. */
export class FirstAnswers<T> {
  readonly #store: Pick<Store, 'set' | 'delete'>
  readonly #now: () => number
  readonly #prefix: string
  readonly #keptMs: number
  readonly #answers = new Map<string, Answered<T>>()

  /** The documents' names begin with `prefix`. */
  constructor(store: Pick<Store, 'set' | 'delete'>, now: () => number, prefix = 'once/', keptMs = DAY_MS) {
    this.#store = store
    this.#now = now
    this.#prefix = prefix
    this.#keptMs = keptMs
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    const found = documents.flatMap(([key, value]) =>
      key.startsWith(this.#prefix) ? [[key.slice(this.#prefix.length), value as Answered<T>] as const] : [],
    )
    for (const [key, answered] of found.sort(([, one], [, other]) => one.at - other.at))
      this.#answers.set(key, answered)
  }

  of(key: string): T | undefined {
    const known = this.#answers.get(key)
    return known && known.at > this.#now() - this.#keptMs ? known.answer : undefined
  }

  async keep(key: string, answer: T): Promise<void> {
    const at = this.#now()
    await this.#store.set(this.#prefix + key, { at, answer } satisfies Answered<T>)
    this.#answers.delete(key)
    this.#answers.set(key, { at, answer })
    await this.#prune(at)
  }

  /** Deletes what is too old; the oldest come first. */
  async #prune(now: number): Promise<void> {
    for (const [key, { at }] of this.#answers) {
      if (at > now - this.#keptMs) return
      this.#answers.delete(key)
      await this.#store.delete(this.#prefix + key)
    }
  }
}
