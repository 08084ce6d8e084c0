import type { ScheduleTrigger } from '../contract.js'
import { passedTimes } from './cron.js'

/** The times of one schedule that were decided on, as they are stored. */
export interface Slots {
  /** The expression and zone that they belong to. */
  readonly key: string
  /** The newest time that was decided on: it never fires again. */
  readonly last: number
  /** Times that will fire, oldest first. */
  readonly claims: readonly number[]
  /** Times that passed without a fire since the last one that fired. */
  readonly missed: number
  /** The automation was off: times that pass meanwhile do not count. */
  readonly idle?: true
}

/** A time that is so little late is on time. */
const ON_TIME = 10_000
const HOUR = 3_600_000
/** The most times that fire one after the other because they were missed. */
const MOST_CLAIMS = 24

/** The identity of a schedule. */
export const scheduleKey = ({ cron, timeZone = 'UTC' }: ScheduleTrigger): string => `${timeZone} ${cron}`

/** The slots of a schedule that begins now. */
export const freshSlots = (trigger: ScheduleTrigger, now: number): Slots => ({
  key: scheduleKey(trigger),
  last: now,
  claims: [],
  missed: 0,
})

/** Decides on every time that passed since the last decision; undefined: none did. `busy`: it runs, or has claims. */
export const decided = (slots: Slots, trigger: ScheduleTrigger, now: number, busy: boolean): Slots | undefined => {
  const most = Math.max(0, MOST_CLAIMS - slots.claims.length)
  const { first, newest, count } = passedTimes(trigger, slots.last, now, most)
  if (newest === undefined) return undefined
  const next = { ...slots, last: newest }
  const late = now - newest
  const { missed = 'once' } = trigger
  const catchesUp = missed === 'every' && (count > 1 || late >= ON_TIME)
  if (busy && !catchesUp) return { ...next, missed: slots.missed + count }
  if (catchesUp)
    return first.length === 0
      ? { ...next, missed: slots.missed + count }
      : { ...next, claims: [...slots.claims, ...first], missed: count - first.length }
  const fires = missed === 'every' || late < (missed === 'once' ? HOUR : ON_TIME)
  return fires ? { ...next, claims: [newest], missed: 0 } : { ...next, missed: slots.missed + count }
}

/** The slots as a restart finds them: claims that a crash left fire, unless their policy gives them up by now. */
export const afterRestart = (slots: Slots, { missed = 'once' }: ScheduleTrigger, now: number): Slots => {
  if (missed === 'every') return slots
  const claims = slots.claims.filter(slot => now - slot < HOUR)
  return { ...slots, claims, missed: slots.missed + slots.claims.length - claims.length }
}
