import { setImmediate } from 'node:timers/promises'
import { refuse, type Input } from '../../sdk/index.js'
import type { UsageCalls, UsageRollup, UsageRow } from './contract.js'
import { usdOf } from './line.js'
import { KEYS, SUMS, type SummedLines, type UsageIndex, type UsageKey } from './usage-index.js'

type Asked = Input<UsageCalls, 'GET /usage/rollup'>

const MOST_ROWS = 100_000

/** Sums what turns used, a month at a time, so that other requests are answered in between. */
export const rollup = async (index: Pick<UsageIndex, 'sums' | 'span'>, asked: Asked): Promise<UsageRollup> => {
  const [from, to] = [dayAsked('from', asked.from), dayAsked('to', asked.to)]
  if (from !== undefined && to !== undefined && from > to) refuseField('from', 'a day not after to', `${from} to ${to}`)
  const by = keysAsked(asked.by)
  const where = {
    ...(asked.provider !== undefined && { provider: asked.provider }),
    ...(asked.conversation !== undefined && { conversation: asked.conversation }),
    ...(asked.persona !== undefined && { persona: asked.persona }),
  }
  const first = by.length
  const groups = new Map<string, (string | number)[]>()
  const total: number[] = SUMS.map(() => 0)
  const { span } = index
  for (const month of span ? monthsOf(later(from, span.first), earlier(to, span.last)) : []) {
    const days = { from: later(from, `${month}-01`), to: earlier(to, `${month}-31`) }
    for (const row of index.sums({ ...days, by, where })) {
      for (let at = 0; at < total.length; at++) total[at]! += row[first + at] as number
      const name = row.slice(0, first).join('\0')
      const known = groups.get(name)
      if (known) for (let at = first; at < row.length; at++) known[at] = (known[at] as number) + (row[at] as number)
      else groups.set(name, [...row])
      if (groups.size > MOST_ROWS)
        refuse('unprocessable', `more than ${MOST_ROWS} rows: name fewer days in from and to, or fewer keys in by`)
    }
    await setImmediate()
  }
  const day = by.indexOf('day')
  const nanos = first + SUMS.indexOf('nanos')
  const sorted = [...groups.values()].sort(
    (one, other) =>
      (day < 0 ? 0 : order(one[day] as string, other[day] as string))
      || (other[nanos] as number) - (one[nanos] as number),
  )
  return {
    rows: sorted.map(row => shown(row, by)),
    total: shown(total, []),
    ...(span && { firstDay: span.first }),
  }
}

/** A row without the keys that its lines do not have. */
const shown = (row: SummedLines, by: readonly UsageKey[]): UsageRow => {
  const [turns, input, output, cacheRead, cacheCreation, nanos, duration, unpriced] = row.slice(by.length) as number[]
  const keys: { [name in keyof UsageRow]?: string } = {}
  for (const [at, key] of by.entries())
    if (row[at] !== '') keys[key === 'conversation' ? 'conversationId' : key] = row[at] as string
  return {
    ...(keys as Partial<UsageRow>),
    turns: turns!,
    inputTokens: input!,
    outputTokens: output!,
    cacheReadTokens: cacheRead!,
    cacheCreationTokens: cacheCreation!,
    costUsd: usdOf(nanos!),
    durationMs: duration!,
    unpriced: unpriced!,
  }
}

const order = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
const later = (day: string | undefined, first: string): string => (day !== undefined && day > first ? day : first)
const earlier = (day: string | undefined, last: string): string => (day !== undefined && day < last ? day : last)

/** The months from one day to another, such as `2026-03`. */
const monthsOf = (from: string, to: string): string[] => {
  const months: string[] = []
  const at = new Date(`${from.slice(0, 7)}-01T00:00:00Z`)
  for (; at.toISOString().slice(0, 7) <= to.slice(0, 7); at.setUTCMonth(at.getUTCMonth() + 1))
    months.push(at.toISOString().slice(0, 7))
  return months
}

const refuseField = (path: string, expected: string, found: string): never =>
  refuse('invalid', `${path}: expected ${expected}, found ${JSON.stringify(found)}`, { errors: [{ path, expected }] })

/** A day of the calendar: a month has no 31st because its number would allow one. */
const dayAsked = (path: 'from' | 'to', day: string | undefined): string | undefined => {
  if (day === undefined) return undefined
  const at = Date.parse(`${day}T00:00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day)
    ? day
    : refuseField(path, 'a day such as 2026-03-31', day)
}

const keysAsked = (by: string | undefined): readonly UsageKey[] => {
  if (by === undefined) return KEYS
  const words = by.split(',').map(word => word.trim())
  const wrong = words.find(word => !(KEYS as readonly string[]).includes(word))
  if (wrong !== undefined) refuseField('by', `keys of ${KEYS.join(', ')} with commas`, wrong)
  return KEYS.filter(key => words.includes(key))
}
