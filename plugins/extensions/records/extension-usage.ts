import type { Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { EntryUses } from './kept-extension.js'
import { ignored } from '../../../sdk/index.js'

const KEY = 'usage'
const WRITE_MS = 2_000
const MOST_CALLS = Number.MAX_SAFE_INTEGER

/** The use of declared entries by extensions. */
export class ExtensionUsage {
  readonly #store: Pick<Host['store'], 'get' | 'set'>
  readonly #turns = new KeyedMutex()
  #uses: { [id: string]: EntryUses } = {}
  #isDirty = false
  #timer: NodeJS.Timeout | undefined

  constructor(store: Pick<Host['store'], 'get' | 'set'>) {
    this.#store = store
  }

  async load(): Promise<void> {
    this.#uses = (await this.#store.get<{ [id: string]: EntryUses }>(KEY)) ?? {}
  }

  /** The uses of the entries that a manifest still declares. */
  of(id: string, declared: ReadonlySet<string>): EntryUses {
    return Object.fromEntries(Object.entries(this.#uses[id] ?? {}).filter(([entry]) => declared.has(entry)))
  }

  /** Counts uses; they are written soon. */
  count(id: string, entry: string, calls = 1): void {
    this.#add(id, entry, calls)
    this.#timer ??= setTimeout(() => void this.flush().catch(ignored('the next count writes them')), WRITE_MS).unref()
  }

  /** Counts the uses that pages report, and drops undeclared entries; durable when this resolves. */
  async report(
    reports: { readonly [id: string]: { readonly [entry: string]: number } },
    declaredBy: (id: string) => ReadonlySet<string> | undefined,
  ): Promise<void> {
    for (const [id, entries] of Object.entries(reports)) {
      const declared = declaredBy(id)
      for (const [entry, calls] of Object.entries(entries))
        if (calls > 0 && declared?.has(entry)) this.#add(id, entry, calls)
    }
    for (const [id, uses] of Object.entries(this.#uses)) {
      const declared = declaredBy(id)
      if (declared) this.#uses[id] = Object.fromEntries(Object.entries(uses).filter(([entry]) => declared.has(entry)))
    }
    await this.flush()
  }

  /** Called when an extension was removed. */
  async drop(id: string): Promise<void> {
    if (!this.#uses[id]) return
    this.#isDirty = true
    delete this.#uses[id]
    await this.flush()
  }

  /** Writes the counters. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    return this.#turns.with(KEY, async () => {
      if (!this.#isDirty) return
      this.#isDirty = false
      await this.#store.set(KEY, this.#uses)
    })
  }

  #add(id: string, entry: string, calls: number): void {
    this.#isDirty = true
    const uses = (this.#uses[id] ??= {})
    const before = Object.hasOwn(uses, entry) ? uses[entry]!.calls : 0
    uses[entry] = { calls: Math.min(before + calls, MOST_CALLS), last: new Date().toISOString() }
  }
}
