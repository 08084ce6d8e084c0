import type { Store } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { FiringOutcome, RuleFiring } from './contract.js'

const KEY = 'firings'
type Stored = { readonly [id: string]: Omit<RuleFiring, 'id'> }

/** When rules did something; of rules that exist alone. */
export class Firings {
  readonly #store: Pick<Store, 'get' | 'set'>
  readonly #turns = new KeyedMutex()

  constructor(store: Pick<Store, 'get' | 'set'>) {
    this.#store = store
  }

  /** The firings of these rules, the newest first. */
  async list(ids: ReadonlySet<string>): Promise<RuleFiring[]> {
    return Object.entries(await this.#read())
      .filter(([id]) => ids.has(id))
      .map(([id, firing]) => ({ id, ...firing }))
      .sort((one, other) => other.at - one.at)
  }

  /** Notes one more; durable when it returns. Those of other rules than `ids` go. */
  async stamp(id: string, outcome: FiringOutcome, ids: ReadonlySet<string>): Promise<void> {
    await this.#turns.with(KEY, async () => {
      const known = Object.entries(await this.#read()).filter(([each]) => ids.has(each))
      const { count = 0 } = known.find(([each]) => each === id)?.[1] ?? {}
      await this.#store.set(KEY, { ...Object.fromEntries(known), [id]: { at: Date.now(), count: count + 1, outcome } })
    })
  }

  async #read(): Promise<Stored> {
    return (await this.#store.get<Stored>(KEY)) ?? {}
  }
}
