import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import type { LimitWindow } from '../../agent/contract.js'
import type { ProviderDefinition } from '../../providers/contract.js'
import type { AskProvider } from '../provider-wire.js'
import { liveWindows, readMoment, readWindows } from './reading.js'
import { ignored } from '../../../sdk/index.js'

/** What reading limits needs of the group. */
export interface ReadingDeps {
  readonly store: Pick<Store, 'set' | 'delete' | 'all'>
  readonly ask: AskProvider
  readonly definition: (provider: string) => Promise<ProviderDefinition>
  /** The headers that carry the credential of an account. */
  readonly headers: (provider: string, account: string) => Promise<{ [name: string]: string }>
  readonly changed: (provider: string) => void
}
interface Measured {
  readonly windows: readonly LimitWindow[]
}
/** An account to measure. */
export interface MeasuredAccount {
  readonly provider: string
  readonly id: string
}

const KEY = 'limits/'
const AT_ONCE = 4
const LEFT_ALONE_MS = 60_000
const LONGEST_ALONE_MS = 3_600_000
const STALE_MS = 60_000
const DUE_MS = 300_000

/** How full the limits of accounts are, as their providers said last: percentages and times alone. */
export class LimitReadings {
  readonly #deps: ReadingDeps
  readonly #kept = new Map<string, Measured>()
  readonly #asked = new Map<string, number>()
  readonly #notBefore = new Map<string, number>()
  readonly #asking = new Map<string, Promise<void>>()
  readonly #slots = new Semaphore(AT_ONCE)

  constructor(deps: ReadingDeps) {
    this.#deps = deps
  }

  async load(): Promise<void> {
    for (const [key, value] of await this.#deps.store.all<Measured>(KEY)) this.#kept.set(key.slice(KEY.length), value)
  }

  /** The windows of an account that count now. */
  windows(account: string, definition: ProviderDefinition, model?: string): LimitWindow[] {
    return liveWindows(this.#kept.get(account)?.windows ?? [], definition, Date.now(), model)
  }

  /** Reads what the headers of an ordinary answer say. */
  async heard(
    definition: ProviderDefinition,
    account: string,
    headers: { readonly [name: string]: string },
  ): Promise<LimitWindow[]> {
    if (definition.limits?.from !== 'headers') return []
    const windows = readWindows(definition.limits, headers, Date.now())
    if (windows.length > 0) await this.#keep(definition.id, account, windows)
    return windows
  }

  async forget(account: string): Promise<void> {
    this.#kept.delete(account)
    await this.#deps.store.delete(KEY + account)
  }

  /** Measures the accounts whose last reading is older than a minute; with `force` all. Waits `waitMs` at most. */
  async freshen(accounts: readonly MeasuredAccount[], { force, waitMs }: { force: boolean; waitMs: number }) {
    const now = Date.now()
    const due = accounts.filter(({ id }) => force || now - (this.#asked.get(id) ?? 0) > STALE_MS)
    if (due.length === 0) return
    const over = new AbortController()
    const measured = Promise.all(due.map(account => this.#measure(account)))
    await Promise.race([
      measured,
      delay(waitMs, undefined, { ref: false, signal: over.signal }).catch(ignored('the wait was cut short')),
    ])
    over.abort()
  }

  /** Measures the accounts whose turn it is. */
  async tick(accounts: readonly MeasuredAccount[]): Promise<void> {
    const due = accounts.filter(({ id }) => Date.now() - (this.#asked.get(id) ?? 0) >= DUE_MS)
    await Promise.all(due.map(account => this.#measure(account)))
  }

  #measure(account: MeasuredAccount): Promise<void> {
    const asking = this.#asking.get(account.id)
    if (asking) return asking
    if ((this.#notBefore.get(account.id) ?? 0) > Date.now()) return Promise.resolve()
    const asked = this.#slots
      .run(() => this.#ask(account))
      // A provider that is slow or refuses to tell leaves the last reading.
      .catch(() => void this.#notBefore.set(account.id, Date.now() + LEFT_ALONE_MS))
      .finally(() => this.#asking.delete(account.id))
    this.#asking.set(account.id, asked)
    return asked
  }

  async #ask({ provider, id }: MeasuredAccount): Promise<void> {
    const { limits, baseUrl } = await this.#deps.definition(provider)
    if (limits?.from !== 'get') return
    this.#asked.set(id, Date.now())
    const headers = await this.#deps.headers(provider, id)
    const answer = await this.#deps.ask({ url: limits.url ?? baseUrl, headers })
    const wait = readMoment(answer.headers['retry-after'], Date.now())
    if (wait !== undefined) this.#notBefore.set(id, Math.min(wait, Date.now() + LONGEST_ALONE_MS))
    if (answer.status === 200) await this.#keep(provider, id, readWindows(limits, answer.value, Date.now()))
  }

  async #keep(provider: string, account: string, windows: readonly LimitWindow[]): Promise<void> {
    const before = this.#kept.get(account)?.windows ?? []
    this.#asked.set(account, Date.now())
    this.#kept.set(account, { windows })
    await this.#deps.store.set(KEY + account, { windows })
    const moved = windows.some(window => {
      const was = before.find(({ kind }) => kind === window.kind)
      return !was || Math.abs(was.utilization - window.utilization) >= 1
    })
    if (moved || before.length !== windows.length) this.#deps.changed(provider)
  }
}
