import { SELECTORS, unseenBut } from '../../../../sdk/unseen.js'

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })
const number = new Intl.NumberFormat()
const money = new Intl.NumberFormat(undefined, { style: 'currency', currency: 'USD', maximumFractionDigits: 4 })

const STEPS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]

/** How long ago a moment was. */
export const agoOf = (at: number, now = Date.now()): string => {
  const past = now - at
  for (const [unit, ms] of STEPS) if (past >= ms) return relative.format(-Math.floor(past / ms), unit)
  return relative.format(0, 'minute')
}

/** A moment in full. */
export const momentOf = (at: number): string => moment.format(at)

/** A day in UTC, as `2026-11-29` is sent. */
export const dayText = (date: string): string => day.format(Date.parse(date))

/** A span of time in at most two units. */
export const spanText = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export const countText = (value: number): string => number.format(value)

/** A number of files in words. */
export const filesText = (count: number): string => (count === 1 ? '1 file' : `${countText(count)} files`)

export const usdTextOf = (value: number): string => money.format(value)

/** A number of bytes for people. */
export const sizeTextOf = (bytes: number): string => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const at = bytes > 0 ? Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10)) : 0
  return `${number.format(Math.round((bytes / 1024 ** at) * 10) / 10)} ${units[at]}`
}

const HIDDEN = unseenBut(String.raw`\t\n` + SELECTORS)

/** A text whose control and bidi characters can be seen, as their code points. */
export const visibleText = (text: string): string =>
  text.replace(HIDDEN, character => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`)

/** A name on one line whose control and bidi characters can be seen. */
export const visibleName = (name: string): string =>
  visibleText(name).replace(/[\n\t]/g, one => (one === '\n' ? '⏎' : '⇥'))
