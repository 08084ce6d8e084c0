import { refuse } from '../../../sdk/index.js'
import type { StoredReporter } from '../stored.js'

const WINDOW_MS = 10_000
const MOST_IN_WINDOW = 500
const DAY_MS = 24 * 3_600_000

/** How many events each reporter may send at once and a day. */
export class ReportLimits {
  readonly #windows = new Map<number, { since: number; events: number }>()

  /** Counts an event of a reporter; refuses one beyond its limits. */
  spend({ id, today, dailyMax }: StoredReporter, now: number): void {
    if (today.accepted >= dailyMax)
      limited(DAY_MS - (now % DAY_MS), `this reporter sent ${dailyMax} events today, which is its limit`)
    const found = this.#windows.get(id)
    const current = found && now >= found.since && now - found.since < WINDOW_MS ? found : { since: now, events: 0 }
    if (current.events >= MOST_IN_WINDOW)
      limited(current.since + WINDOW_MS - now, `expected at most ${MOST_IN_WINDOW} events within 10 s, found more`)
    current.events += 1
    this.#windows.set(id, current)
  }
}

const limited = (ms: number, message: string): never => {
  const retryAfter = Math.max(1, Math.ceil(ms / 1000))
  return refuse('too-many', message, {
    retryAfter,
    headers: { 'x-sentry-rate-limits': `${retryAfter}:error:organization` },
  })
}
