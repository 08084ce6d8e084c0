import type { Store } from '../../../sdk/index.js'

interface DayCount {
  readonly day: string
  readonly count: number
}

const KEY = 'day/'

/** How often each gate started a run on the present day, by UTC. */
export class DayCounts {
  readonly #store: Pick<Store, 'set'>
  readonly #now: () => number
  readonly #counts = new Map<string, DayCount>()

  constructor(store: Pick<Store, 'set'>, now: () => number) {
    this.#store = store
    this.#now = now
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    for (const [key, value] of documents)
      if (key.startsWith(KEY)) this.#counts.set(key.slice(KEY.length), value as DayCount)
  }

  of(id: string): number {
    const known = this.#counts.get(id)
    return known?.day === this.#today() ? known.count : 0
  }

  async add(id: string): Promise<void> {
    const next = { day: this.#today(), count: this.of(id) + 1 }
    await this.#store.set(KEY + id, next)
    this.#counts.set(id, next)
  }

  #today(): string {
    return new Date(this.#now()).toISOString().slice(0, 10)
  }
}
