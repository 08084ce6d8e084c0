import t from 'tap'
import { MaskCache } from '../../../plugins/shield/gateway/mask-cache.js'
import { addCounts, noCounts, type ShieldDayCounts } from '../../../plugins/shield/stats/shield-counts.js'
import { shieldStats, suggestionsOf } from '../../../plugins/shield/stats/shield-stats.js'
import { exactly } from '../../support/lists.js'
import { shieldPolicy } from './support.js'

const DAY = 86_400_000
const NOW = 1_795_392_000_000

const counts = (more: Partial<ShieldDayCounts>): ShieldDayCounts => ({ ...noCounts(), ...more })

t.test('a list of which nothing was found for 90 days is suggested to be removed', async t => {
  const words = { wholeWord: true, caseSensitive: false, kind: 'NAME', values: ['Ann'] }
  const lists = ['old', 'new', 'used'].map(id => ({ ...words, id, label: `The ${id}` }))
  const since = { 'list old': NOW - 91 * DAY, 'list new': NOW - DAY, 'list used': NOW - 91 * DAY }
  const found = { detector: 'list', kind: 'NAME', source: 'used', masked: true, count: 1, values: ['h'] } as const
  const days = new Map([['2026-11-20', counts({ found: [{ ...found, values: ['h'] }] })]])
  t.match(
    suggestionsOf(days, shieldPolicy({ lists }), since, NOW),
    exactly({ kind: 'unused', detector: 'list', source: 'old', text: /The old found nothing/ }),
  )
})

t.test('days are added up, and different values are counted once', async t => {
  const one = counts({
    providers: { p: { trusted: 1, masked: 2, refused: 0, places: 3 } },
    found: [{ detector: 'email', kind: 'EMAIL', masked: true, count: 2, values: ['a', 'b'] }],
    ms: [1, 2, 3, 4],
  })
  const other = counts({
    providers: { p: { trusted: 0, masked: 1, refused: 1, places: 1 } },
    found: [{ detector: 'email', kind: 'EMAIL', masked: true, count: 1, values: ['b'] }],
    restored: 5,
  })
  const days = new Map([
    ['2026-11-27', one],
    ['2026-11-28', other],
  ])
  t.match(shieldStats(days, []), {
    requests: { total: 5, shielded: 3, trusted: 1, blocked: 1 },
    masked: exactly({ kind: 'EMAIL', count: 3, distinct: 2 }),
    perProvider: exactly({ provider: 'p', requests: 5, masked: 4, blocked: 1 }),
    perDay: exactly({ day: '2026-11-27', masked: 3, blocked: 0 }, { day: '2026-11-28', masked: 1, blocked: 1 }),
    ...{ restored: 5, overheadMs: { p50: 3, p95: 4 } },
  })
  const all = noCounts()
  addCounts(all, one)
  addCounts(all, one)
  t.match(all.found, exactly({ count: 4, values: exactly('a', 'b') }))
})

t.test('masked texts are kept within bounds, and not under another revision', async t => {
  const cache = new MaskCache()
  const masked = { masked: 'x', uses: {}, refused: [] }
  const big = (mark: string) => mark + 'y'.repeat(5 * 1024 * 1024)
  for (const mark of ['a', 'b', 'c', 'd']) cache.of('one', 'r').set(big(mark), masked)
  t.equal(cache.of('one', 'r').get(big('a')), undefined, 'the oldest text of a conversation goes first')
  t.equal(cache.of('one', 'r').get(big('d')), masked)
  for (const id of ['two', 'three', 'four', 'five', 'six'])
    for (const mark of ['a', 'b', 'c']) cache.of(id, 'r').set(big(mark), masked)
  t.equal(cache.of('one', 'r').get(big('d')), undefined, 'the conversation used least recently goes first')
  t.equal(cache.of('six', 'r').get(big('c')), masked)
  cache.drop('six')
  t.equal(cache.of('six', 'r').get(big('c')), undefined)
  cache.of('six', 'r').set('z', masked)
  t.equal(cache.of('six', 'other').get('z'), undefined)
})
