import { refuse } from '../../refusal.js'

const FIELDS: readonly (readonly [name: string, least: number, most: number])[] = [
  ['minute', 0, 59],
  ['hour', 0, 23],
  ['day', 1, 31],
  ['month', 1, 12],
  ['weekday', 0, 7],
]
const MINUTE = 60_000
const DAY = 86_400_000
/** A day that no year has in four, such as 29 February. */
const MOST_DAYS = 366 * 8

/** When a work is due, in UTC. */
export interface CronTimes {
  /** The first time after a moment. */
  next(after: number): number
}

const valuesOf = (text: string, [name, least, most]: (typeof FIELDS)[number]): ReadonlySet<number> => {
  const wrong = (): never => refuse('invalid', `expression: expected a ${name} of ${least}-${most}, found ${text}`)
  const values = text.split(',').flatMap(part => {
    const [, range = '', step = '1'] = /^(\*|\d{1,2}(?:-\d{1,2})?)(?:\/(\d{1,2}))?$/.exec(part) ?? wrong()
    const [from, to] = range === '*' ? [least, most] : range.split('-').map(Number)
    const end = to ?? (part.includes('/') ? most : from!)
    if (from! < least || end > most || from! > end || Number(step) < 1) wrong()
    return Array.from({ length: Math.floor((end - from!) / Number(step)) + 1 }, (_, at) => from! + at * Number(step))
  })
  return new Set(values)
}

/** The times of five fields: minute, hour, day of the month, month, day of the week (crontab(5)). */
export const cronTimes = (expression: string): CronTimes => {
  const texts = expression.trim().split(/\s+/)
  if (texts.length !== FIELDS.length) refuse('invalid', 'expression: expected five fields, such as 0 9 * * 1')
  const [minutes, hours, days, months, weekdays] = texts.map((text, at) => valuesOf(text, FIELDS[at]!)) as [
    ReadonlySet<number>,
    ReadonlySet<number>,
    ReadonlySet<number>,
    ReadonlySet<number>,
    ReadonlySet<number>,
  ]
  const [anyDay, anyWeekday] = [texts[2] === '*', texts[4] === '*']
  const isDay = (date: Date): boolean => {
    const day = days.has(date.getUTCDate())
    const weekday = weekdays.has(date.getUTCDay()) || (weekdays.has(7) && date.getUTCDay() === 0)
    if (!months.has(date.getUTCMonth() + 1)) return false
    return anyDay ? weekday : anyWeekday ? day : day || weekday
  }
  return {
    next: after => {
      const first = Math.floor(after / MINUTE) * MINUTE + MINUTE
      let day = Math.floor(first / DAY) * DAY
      for (let days = 0; days < MOST_DAYS; days++, day += DAY) {
        if (!isDay(new Date(day))) continue
        for (let at = Math.max(first, day); at < day + DAY; at += MINUTE) {
          const date = new Date(at)
          if (hours.has(date.getUTCHours()) && minutes.has(date.getUTCMinutes())) return at
        }
      }
      return refuse('invalid', 'expression: it never comes to this time')
    },
  }
}
