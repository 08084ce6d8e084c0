import type { Store } from '../../../sdk/index.js'

/** Facts about an automation that are not in its file. */
interface Switch {
  /** Errors before this moment do not count. */
  readonly since?: number
  /** `failures`, or who switched it off. */
  readonly disabledBy?: string
}

const KEY = 'switch/'

/** Who switched automations off, and since when their failures count. */
export class Switches {
  readonly #store: Pick<Store, 'set' | 'delete'>
  readonly #switches = new Map<string, Switch>()

  constructor(store: Pick<Store, 'set' | 'delete'>) {
    this.#store = store
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    const found = documents.filter(([key]) => key.startsWith(KEY))
    for (const [key, value] of found) this.#switches.set(key.slice(KEY.length), value as Switch)
  }

  of(id: string): Switch {
    return this.#switches.get(id) ?? {}
  }

  /** It was switched on: its failures are cleared. */
  on(id: string, now: number): Promise<void> {
    return this.#keep(id, { since: now })
  }

  off(id: string, by: string): Promise<void> {
    return this.#keep(id, { ...this.of(id), disabledBy: by })
  }

  async forget(id: string): Promise<void> {
    this.#switches.delete(id)
    await this.#store.delete(KEY + id)
  }

  async #keep(id: string, as: Switch): Promise<void> {
    await this.#store.set(KEY + id, as)
    this.#switches.set(id, as)
  }
}
