import type { CliForm } from '../../cli-table.js'
import { bytesWords } from '../../sizes.js'
import { oneLine, plain } from './text.js'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Times before this, in 2001, are numbers. */
const FIRST_TIME = 1e12
/** A whole number between these, in 2014 and 2065, is a time, whatever its field is called. */
const TIMES = [1.4e12, 3e12] as const

const two = (part: number): string => String(part).padStart(2, '0')

/** A date and time of this machine's zone, such as `2026-11-20 14:03`. */
export const dateWords = (at: number): string => {
  const date = new Date(at)
  return (
    `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `
    + `${two(date.getHours())}:${two(date.getMinutes())}`
  )
}

/** A date and time with its seconds, for lines that follow each other. */
export const momentWords = (at: number): string => `${dateWords(at)}:${two(new Date(at).getSeconds())}`

/** The time of a day in UTC with its thousandths, as in logs. */
export const clockWords = (at: number): string => new Date(at).toISOString().slice(11, 23)

const largest = (ms: number): string => {
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  return ms < HOUR ? `${Math.floor(ms / MINUTE)} min` : `${Math.floor(ms / HOUR)} h`
}

/** A time as words: within a day how far away it is, else its date. */
export const timeWords = (at: number, now: number): string => {
  const away = at - now
  if (Math.abs(away) >= DAY) return dateWords(at)
  if (Math.abs(away) < SECOND) return 'now'
  return away > 0 ? `in ${largest(away)}` : `${largest(-away)} ago`
}

/** A duration in at most two units, such as `2 h 5 min`. */
export const durationWords = (ms: number): string => {
  if (ms < SECOND) return `${Math.round(ms)} ms`
  if (ms < MINUTE) return `${ms % SECOND === 0 ? ms / SECOND : (ms / SECOND).toFixed(1)} s`
  const [unit, word, smaller, smallerWord] =
    ms < HOUR
      ? ([MINUTE, 'min', SECOND, 's'] as const)
      : ms < 2 * DAY
        ? ([HOUR, 'h', MINUTE, 'min'] as const)
        : ([DAY, 'd', HOUR, 'h'] as const)
  const rest = Math.floor((ms % unit) / smaller)
  return `${Math.floor(ms / unit)} ${word}${rest > 0 ? ` ${rest} ${smallerWord}` : ''}`
}

/** An amount in US dollars; less than a cent with the digits that say something. */
export const moneyWords = (usd: number): string =>
  `$${usd !== 0 && Math.abs(usd) < 0.01 ? usd.toFixed(4) : usd.toFixed(2)}`

/** A number with a comma at each thousand. */
export const numberWords = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 3 })

/** How a number of this field is shown. */
export const valueForm = (field: string): CliForm => {
  const name = field.split('.').at(-1)!
  if (/(?:^at|At|^since|^until|Until)$/.test(name)) return 'time'
  if (/Usd$/.test(name)) return 'money'
  if (/(?:^bytes|Bytes)$/.test(name)) return 'size'
  if (/Ms$/.test(name)) return 'duration'
  if (/Seconds$/.test(name)) return 'seconds'
  return /(?:^pct|Pct|Percent|^percent)$/.test(name) ? 'percent' : 'text'
}

/** A value as words, on one line; nothing for none. */
export const valueWords = (form: CliForm, value: unknown, now: number): string => {
  if (value === undefined || value === null) return ''
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.map(each => valueWords(form, each, now)).join(', ')
  if (typeof value === 'object') return objectWords(value, now)
  if (form === 'prose') return plain(String(value)).replaceAll(/\s+/g, ' ').trim()
  if (typeof value !== 'number') return oneLine(String(value))
  if (form === 'time') return value > FIRST_TIME ? timeWords(value, now) : String(value)
  if (form === 'past') return valueWords('time', Math.min(value, now), now)
  if (form === 'money') return moneyWords(value)
  if (form === 'size') return bytesWords(value)
  if (form === 'duration') return durationWords(value)
  if (form === 'seconds') return durationWords(value * SECOND)
  if (form === 'percent') return `${Math.round(value)} %`
  if (form === 'text' && Number.isInteger(value) && value > TIMES[0] && value < TIMES[1]) return timeWords(value, now)
  return form === 'number' ? numberWords(value) : String(value)
}

/** The fields of an object on one line, such as `kind command, command npm test`. */
const objectWords = (value: object, now: number): string =>
  Object.entries(value)
    .filter(([, each]) => each !== undefined && each !== null && !(Array.isArray(each) && each.length === 0))
    .map(([name, each]) => `${nameWords(name)} ${valueWords(valueForm(name), each, now)}`)
    .join(', ')

/** A name of a field as words: `startedAt` is `started at`. */
export const nameWords = (name: string): string =>
  name.replace(/(?<=[a-z\d])[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
