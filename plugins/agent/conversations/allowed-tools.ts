import type { Log, Store } from '../../../sdk/index.js'

const KEY = 'remembered/'

/** The tools that people always allow in a conversation. */
export class Remembered {
  readonly #store: Pick<Store, 'all' | 'set' | 'delete'>
  readonly #log: Pick<Log, 'warn'>
  readonly #names = new Map<string, Set<string>>()

  constructor(store: Pick<Store, 'all' | 'set' | 'delete'>, log: Pick<Log, 'warn'>) {
    this.#store = store
    this.#log = log
  }

  async load(): Promise<void> {
    for (const [key, names] of await this.#store.all<string[]>(KEY))
      this.#names.set(key.slice(KEY.length), new Set(names))
  }

  names(conversationId: string): ReadonlySet<string> {
    return this.#names.get(conversationId) ?? new Set()
  }

  /** Always allows a tool from now on; if a crash loses this, the person is asked once more. */
  add(conversationId: string, name: string): void {
    const names = new Set([...this.names(conversationId), name])
    this.#names.set(conversationId, names)
    this.#store
      .set(KEY + conversationId, [...names])
      .catch(error =>
        this.#log.warn('storing an answer failed', { conversation: conversationId, error: String(error) }),
      )
  }

  async forget(conversationId: string): Promise<void> {
    if (this.#names.delete(conversationId)) await this.#store.delete(KEY + conversationId)
  }
}
