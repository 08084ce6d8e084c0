import t from 'tap'
import type { ArmSums, MeasuredMetric } from '../../../plugins/usage/contract.js'
import { utcDayOf, type LedgerLine } from '../../../plugins/usage/line.js'
import { UsageIndex } from '../../../plugins/usage/usage-index.js'
import { tierSavings } from '../../../plugins/settings/tier/report.js'
import { folderOf } from '../../support/daemon.js'
import { turnOf } from './support.js'

const DAYS = ['2026-01-01', '2026-01-02', '2026-01-03']
const COHORT = 'one'

/** Turns of 12 conversations over three days, in both arms and of two cohorts. */
const lines: LedgerLine[] = Array.from({ length: 400 }, (_, n) => {
  const conversation = (n * 7) % 12
  const turn = turnOf({
    ...{ run: `r-${n}`, at: Date.parse(`${DAYS[n % 3]}T12:00:00Z`), conversationId: `c-${conversation}` },
    ...(n % 5 && { terse: n % 3 === 0, terseCohort: n % 4 ? COHORT : 'other', proseChars: (n * 37) % 900 }),
    ...(n % 2 && { iqSearchArm: conversation < 5, iqSearchCohort: COHORT, searchCalls: n % 9 }),
    ...(n % 2 && n < 40 && { openingSearches: n % 4 }),
  })
  return { ...turn, day: utcDayOf(turn.at), costUsd: 0, costFrom: 'reported' }
})

const expected = (metric: MeasuredMetric, arm: boolean, from: string, to: string): ArmSums => {
  const terse = metric === 'proseChars'
  const units = new Map<string, number>()
  for (const [n, line] of lines.entries()) {
    const { day, [metric]: value, terse: short, terseCohort, iqSearchArm, iqSearchCohort, conversationId } = line
    if (value === undefined || day < from || day > to) continue
    if ((terse ? short : iqSearchArm) !== arm || (terse ? terseCohort : iqSearchCohort) !== COHORT) continue
    const unit = terse ? String(n) : conversationId!
    units.set(unit, (units.get(unit) ?? 0) + value)
  }
  const sums = [...units.values()]
  return {
    units: sums.length,
    sum: sums.reduce((sum, value) => sum + value, 0),
    squares: sums.reduce((sum, value) => sum + value * value, 0),
  }
}

t.test('arms are sums over turns, or over conversations, of one cohort on some days', t => {
  const index = new UsageIndex(folderOf(t))
  t.teardown(() => index.close())
  for (let at = 0; at < lines.length; at += 50) index.add(lines.slice(at, at + 50), { journal: 1, lines: at + 50 })
  for (const metric of ['proseChars', 'searchCalls', 'openingSearches'] as const)
    for (const [from, to] of [
      ['', '9'],
      [DAYS[1]!, DAYS[1]!],
      [DAYS[0]!, DAYS[1]!],
      ['2027-01-01', '9'],
    ] as const) {
      const { on, off } = index.arms(metric, COHORT, from, to)
      t.same(on, expected(metric, true, from, to), `${metric} from ${from} to ${to}`)
      t.same(off, expected(metric, false, from, to), `${metric} from ${from} to ${to}, held out`)
    }
  t.ok(expected('proseChars', true, '', '9').units > 50 && expected('searchCalls', false, '', '9').units > 3)
  t.end()
})

t.test('judged turns summed by what came of them make the same report as one by one', t => {
  const index = new UsageIndex(folderOf(t))
  t.teardown(() => index.close())
  const judged = lines.map((line, n): LedgerLine => ({
    ...{ ...line, costUsd: (n % 7) / 100 },
    ...(n % 3 && { tierScore: (n % 10) / 10, tierFast: n % 10 < 4 }),
    ...(n % 3 && n % 10 < 4 && { tierRouted: n % 2 === 0, tierEscalated: n % 8 === 0, tierDenied: n % 5 === 0 }),
  }))
  index.add(judged, { journal: 1, lines: judged.length })
  for (const [from, to] of [
    ['', '9'],
    [DAYS[1]!, DAYS[1]!],
  ] as const)
    t.same(tierSavings(index.judged(from, to)), tierSavings(judged.filter(({ day }) => day >= from && day <= to)))
  t.ok(tierSavings(judged).routed > 10)
  t.end()
})
