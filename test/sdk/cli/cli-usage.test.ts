import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { fakeDaemon, sandbox } from './cli-process.js'

const SUMS = { cacheReadTokens: 5, cacheCreationTokens: 2, durationMs: 1_000, unpriced: 0 }
const ROWS = [
  { day: '2026-11-22', model: 'big', turns: 2, inputTokens: 1_000, outputTokens: 20, costUsd: 0.7385, ...SUMS },
  { day: '2026-11-23', turns: 1, inputTokens: 7, outputTokens: 3, costUsd: 0, ...SUMS, unpriced: 1 },
]
const TOTAL = { ...SUMS, turns: 3, inputTokens: 1_007, outputTokens: 23, costUsd: 0.7385, unpriced: 1 }

t.test('usage requests the given keys and days, and prints a table with the total', async t => {
  const asked: string[] = []
  const daemon = await fakeDaemon(t, ({ path, query }) => {
    asked.push(`${path}?${query}`)
    return { rows: ROWS, total: TOTAL, firstDay: '2026-11-22' }
  })
  const ran = await daemon.run(['usage', '--by', 'day, model', '--from', '2026-11-01'])
  t.equal(ran.code, 0, ran.err)
  t.same(ran.out.trimEnd().split('\n'), [
    'DAY         MODEL  TURNS  IN     OUT  CACHE READ  CACHE WRITTEN  TOOK  COST',
    '2026-11-22  big    2      1,000  20   5           2              1 s   $0.74',
    '2026-11-23  -      1      7      3    5           2              1 s   $0.00',
    '',
    'turns          3',
    'in             1,007',
    'out            23',
    'cache read     5',
    'cache written  2',
    'took           1 s',
    'cost           $0.74',
    'the price of 1 turn is unknown',
  ])
  t.same(asked, ['/usage/rollup?by=day%2Cmodel&from=2026-11-01'])
  t.match(JSON.parse((await daemon.run(['usage', '--json'])).out), { rows: exactly(...ROWS) })
})

t.test('an unknown key and an impossible day are refused with the expected form', async t => {
  const folder = folderOf(t)
  makeWorkspace(join(folder, 'workspace'))
  const { data } = await spawnDaemon(t, { workspace: join(folder, 'workspace'), data: join(folder, 'data') })
  t.match(await sandbox(['usage', '--by', 'colour', '--data', data]), { code: 2, err: /--by: .*found colour/ })
  t.match(await sandbox(['usage', '--from', '2026-02-30', '--data', data]), { code: 2, err: /from: expected a day/ })
  t.match(await sandbox(['usage', '--data', data]), { code: 0, out: 'no usage in this time\n' })
})
