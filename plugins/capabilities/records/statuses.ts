import type { CapabilityStatus } from './contract.js'
import { ignored } from '../../../sdk/index.js'

const FRESH_MS = 10_000
const MOST_MS = 300_000

interface Known {
  status: CapabilityStatus
  /** How often in a row it was found failingStatus. */
  failures: number
}

type Ask = (thorough: boolean) => Promise<CapabilityStatus>

/** The last known state of each connection; one is asked at most once at a time, and less often while it fails. */
export class Statuses {
  readonly #known = new Map<string, Known>()
  readonly #asking = new Map<string, Promise<CapabilityStatus>>()
  readonly #changed: (id: string) => void

  /** `changed` is called with the id of a connection whose state or its reason changed. */
  constructor(changed: (id: string) => void) {
    this.#changed = changed
  }

  last(id: string): CapabilityStatus | undefined {
    return this.#known.get(id)?.status
  }

  set(id: string, status: CapabilityStatus): void {
    const before = this.#known.get(id)
    const failures = status.state === 'error' ? (before?.failures ?? 0) + 1 : 0
    this.#known.set(id, { status, failures })
    const { state, detail, code } = before?.status ?? {}
    if (before && (state !== status.state || detail !== status.detail || code !== status.code)) this.#changed(id)
  }

  forget(id: string): void {
    this.#known.delete(id)
    this.#asking.delete(id)
  }

  /** The state, asked for anew where it is old; after `withinMs` the last one known. */
  async get(id: string, ask: Ask, withinMs: number): Promise<CapabilityStatus> {
    const known = this.#known.get(id)
    if (known && Date.now() - known.status.checkedAt < freshFor(known)) return known.status
    return this.#within(id, this.#ask(id, ask, false), withinMs)
  }

  /** The state as it is now; after `withinMs` that it is still asked for. */
  async now(id: string, ask: Ask, withinMs: number): Promise<CapabilityStatus> {
    return this.#within(id, this.#ask(id, ask, true), withinMs)
  }

  async #within(id: string, asked: Promise<CapabilityStatus>, withinMs: number): Promise<CapabilityStatus> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<undefined>(resolve => (timer = setTimeout(resolve, withinMs, undefined)))
    const status = await Promise.race([asked, late])
    clearTimeout(timer)
    return (
      status
      ?? this.last(id) ?? {
        state: 'pending',
        code: 'starting',
        detail: 'it has not answered yet: ask again in a moment',
        checkedAt: Date.now(),
      }
    )
  }

  #ask(id: string, ask: Ask, thorough: boolean): Promise<CapabilityStatus> {
    const under = this.#asking.get(id)
    if (under) return under
    const asked = ask(thorough).then(status => {
      if (this.#asking.get(id) === asked) this.set(id, status)
      return status
    })
    this.#asking.set(id, asked)
    void asked
      .finally(() => this.#asking.get(id) === asked && this.#asking.delete(id))
      .catch(ignored('the caller that awaits it gets the failure'))
    return asked
  }
}

/** A state that is no failure is asked for again soon, a failure after twice as long each time. */
const freshFor = ({ failures }: Known): number =>
  failures === 0 ? FRESH_MS : Math.min(FRESH_MS * 2 ** (failures - 1), MOST_MS)
