import { misused } from '../verb.js'
import { plain } from './text.js'

const UNIT: { readonly [unit: string]: number } = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** Parses a future time such as 12h, 30d or 2030-01-31. */
export const timeOf = (text: string, now: number): number => {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? []
  const at = count ? now + Number(count) * UNIT[unit!]! * 1000 : Date.parse(text)
  if (Number.isNaN(at) || at <= now)
    misused(`--expires: expected a future time such as 12h, 30d or 2030-01-31, found ${text}`)
  return at
}

/** Parses a duration such as 90s, 10m or 2h to milliseconds; a plain number is seconds. */
export const durationOf = (text: string, flag: string): number => {
  const [, count, unit = 's'] = /^(\d{1,6})([smhd]?)$/.exec(text) ?? []
  const ms = Number(count) * (UNIT[unit || 's'] ?? NaN) * 1000
  return ms > 0 && ms < 2 ** 31
    ? ms
    : misused(`${flag}: expected a time such as 90s, 10m or 2h, of at most 24 days, found ${text}`)
}

/** The date of a time, in UTC. */
export const dayOfTime = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** Times of what is over; all others are ahead. */
const PAST = /^(?:since|from|to|before|after)$/

/** Parses a time such as 12h (from now, or ago where the field is of the past), 2030-01-31 or 2026-11-20 14:03. */
export const pointOf = (text: string, field: string, now: number): number => {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? []
  const at = count ? now + (PAST.test(field) ? -1 : 1) * Number(count) * UNIT[unit!]! * 1000 : Date.parse(text)
  return Number.isNaN(at)
    ? misused(`${field}: expected a time such as 12h, 30d, 2030-01-31 or "2026-11-20 14:03", found ${plain(text)}`)
    : at
}
