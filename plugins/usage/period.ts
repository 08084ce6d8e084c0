import type { UsageBudget } from './contract.js'

/** The part of the calendar, in UTC, that a budget counts; without an end it never renews. */
export interface Period {
  readonly start: number
  readonly end?: number
}

const DAY_MS = 86_400_000

/** The period of a kind that a moment lies in. */
export const periodAt = (kind: UsageBudget['period'], at: number): Period => {
  const moment = new Date(at)
  const [year, month, date] = [moment.getUTCFullYear(), moment.getUTCMonth(), moment.getUTCDate()]
  const midnight = Date.UTC(year, month, date)
  switch (kind) {
    case 'day':
      return { start: midnight, end: midnight + DAY_MS }
    case 'week': {
      const monday = midnight - ((moment.getUTCDay() + 6) % 7) * DAY_MS
      return { start: monday, end: monday + 7 * DAY_MS }
    }
    case 'month':
      return { start: Date.UTC(year, month, 1), end: Date.UTC(year, month + 1, 1) }
    case 'total':
      return { start: 0 }
  }
}
