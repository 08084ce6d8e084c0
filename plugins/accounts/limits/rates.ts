import type { LimitWindow } from '../../agent/contract.js'

/** A limit that does not say when it is whole again is one by the minute. */
const MINUTE_MS = 60_000
/** A change of so many points is told. */
const MOVED = 10

/** How full the limits by the minute of accounts are, as their last answers told: kept in memory alone. */
export class HeardRates {
  readonly #kept = new Map<string, readonly LimitWindow[]>()

  /** Hears what an answer told; returns whether that is worth showing. */
  hear(account: string, rates: readonly LimitWindow[]): boolean {
    if (rates.length === 0) return false
    const before = this.of(account)
    this.#kept.set(account, rates)
    return (
      before.length !== rates.length
      || rates.some(({ kind, utilization }) => {
        const was = before.find(one => one.kind === kind)
        return was === undefined || Math.abs(was.utilization - utilization) >= MOVED
      })
    )
  }

  /** Those that still count. */
  of(account: string, now = Date.now()): LimitWindow[] {
    const all = this.#kept.get(account) ?? []
    return all.filter(({ resetsAt, measuredAt }) => (resetsAt ?? measuredAt + MINUTE_MS) > now)
  }

  forget(account: string): void {
    this.#kept.delete(account)
  }
}
