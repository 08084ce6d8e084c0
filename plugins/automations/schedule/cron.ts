import { Cron } from 'croner'
import { refuse } from '../../../sdk/index.js'
import type { ScheduleTrigger } from '../contract.js'

type Schedule = Pick<ScheduleTrigger, 'cron' | 'timeZone'>

/** The most times that are counted one by one. */
const MOST_COUNTED = 10_000
const KEPT = 500

const known = new Map<string, Cron>()

const cronOf = ({ cron, timeZone = 'UTC' }: Schedule): Cron => {
  const key = `${timeZone} ${cron}`
  const before = known.get(key)
  if (before) return before
  const made = new Cron(cron, { timezone: timeZone, paused: true, mode: '5-or-6-parts' })
  if (known.size >= KEPT) known.delete(known.keys().next().value!)
  known.set(key, made)
  return made
}

/** Why a schedule cannot be used, as `field: sentence`. */
export const cronProblem = (schedule: Schedule): string | undefined => {
  const { cron, timeZone = 'UTC' } = schedule
  const zone = JSON.stringify(timeZone)
  if (!isZone(timeZone)) return `trigger.timeZone: expected an IANA time zone such as Europe/Berlin, found ${zone}`
  const parts = cron.trim().split(/\s+/)
  // A single word is a date or a name to the library.
  if (parts.length !== 5 && parts.length !== 6)
    return `trigger.cron: expected five fields, or six with seconds, found ${parts.length}`
  try {
    // A day such as 30 February is well-formed, and never comes.
    return cronOf(schedule).nextRun() === null
      ? `trigger.cron: expected a time that comes, found ${JSON.stringify(cron)}, which no day fits`
      : undefined
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : 'it cannot be read'
    return `trigger.cron: expected a cron expression such as 0 9 * * 1, found ${JSON.stringify(cron)} (${why})`
  }
}

const isZone = (timeZone: string): boolean => {
  try {
    new Intl.DateTimeFormat('en', { timeZone })
    return true
  } catch {
    return false
  }
}

/** Refuses a schedule that cannot be read. */
export const assertCron = (schedule: Schedule): void => {
  const problem = cronProblem(schedule)
  if (problem === undefined) return
  const [path = ''] = problem.split(':', 1)
  refuse('unprocessable', problem, { errors: [{ path, expected: 'see the message' }] })
}

/** The first time after a moment; undefined: none comes. */
export const nextTime = (schedule: Schedule, after: number): number | undefined =>
  cronOf(schedule).nextRun(new Date(after))?.getTime()

/** The next times after a moment. */
export const nextTimes = (schedule: Schedule, after: number, count: number): number[] =>
  cronOf(schedule)
    .nextRuns(count, new Date(after))
    .map(time => time.getTime())

/** Times that passed: the first of them, the newest, and how many there are. */
export interface PassedTimes {
  /** At most as many as asked for. */
  readonly first: readonly number[]
  readonly newest?: number
  /** Counted up to 10,000. */
  readonly count: number
}

/** The times after one moment, up to and including another. */
export const passedTimes = (schedule: Schedule, after: number, until: number, most: number): PassedTimes => {
  const first: number[] = []
  let [at, count, newest] = [after, 0, undefined as number | undefined]
  while (count < MOST_COUNTED) {
    const next = nextTime(schedule, at)
    if (next === undefined || next > until) return { first, count, ...(newest !== undefined && { newest }) }
    if (first.length < most) first.push(next)
    ;[at, newest] = [next, next]
    count++
  }
  const last =
    cronOf(schedule)
      .previousRuns(1, new Date(until + 1))[0]
      ?.getTime() ?? at
  return { first, count, newest: last }
}

const pad = (text: string): string => text.padStart(2, '0')

/** A schedule in words, as far as it is one of the common ones. */
export const scheduleWords = ({ cron, timeZone = 'UTC' }: Schedule): string => {
  const fields = cron.trim().split(/\s+/)
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields.slice(-5)
  const seconds = fields.length === 6 ? fields[0]! : '0'
  const zone = `(${timeZone})`
  const every = (field: string) => /^\*\/(\d+)$/.exec(field)?.[1]
  const plainDay = day === '*' && month === '*' && weekday === '*'
  const isNumber = (field: string) => /^\d+$/.test(field)
  if (plainDay && hour === '*' && minute === '*') {
    if (seconds === '*') return 'every second'
    if (every(seconds)) return `every ${every(seconds)} seconds`
    if (seconds === '0') return 'every minute'
  }
  if (seconds !== '0') return `${cron} ${zone}`
  if (plainDay && hour === '*' && every(minute)) return `every ${every(minute)} minutes`
  if (plainDay && hour === '*' && isNumber(minute)) return `every hour at minute ${minute}`
  if (!isNumber(minute) || !isNumber(hour)) return `${cron} ${zone}`
  const time = `${pad(hour)}:${pad(minute)} ${zone}`
  if (plainDay) return `every day at ${time}`
  if (day === '*' && month === '*') return `${daysOf(weekday)} at ${time}`
  if (isNumber(day) && month === '*' && weekday === '*') return `on day ${day} of every month at ${time}`
  return `${cron} ${zone}`
}

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

const daysOf = (weekday: string): string => {
  if (weekday === '1-5') return 'Monday to Friday'
  const names = weekday.split(',').map(day => DAYS[Number(day)])
  return names.every(name => name !== undefined) ? `every ${names.join(' and ')}` : `on weekdays ${weekday}`
}
