import t from 'tap'
import type { OutputSavings } from '../../../plugins/agent/contract.js'
import type { MetricArms } from '../../../plugins/usage/contract.js'
import { daemonWith, type SupportOptions } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'

const PATH = '/settings/savings'
const NONE = { metrics: exactly(), cohort: '' }

t.test('savings are read by people and by tokens that read, and name a bad day', async t => {
  const daemon = await daemonWith(t, ['settings'])
  t.equal((await fetch(daemon.url + PATH)).status, 401)
  for (const scope of ['read', 'drive', 'land'] as const)
    t.equal((await (await daemon.token(scope)).client.call('GET /settings/savings', {})).input.commands, 0, scope)
  const editor = await daemon.token('editor')
  const refused = await daemon.fetch(PATH, { headers: { 'x-sandbox-control': editor.token, cookie: '' } })
  t.equal(refused.status, 403)
  for (const [query, path] of [
    ['from=2026-13-01', 'from'],
    ['to=2026-02-30', 'to'],
    ['from=yesterday', 'from'],
    ['from=2026-11-02&to=2026-11-01', 'from'],
  ] as const) {
    const answer = await daemon.fetch(`${PATH}?${query}`)
    t.equal(answer.status, 400, query)
    t.match(await answer.json(), { errors: exactly({ path }) }, query)
  }
  const report = await (await daemon.fetch(`${PATH}?from=2026-11-01&to=2026-11-01`)).json()
  t.match(report, {
    input: { commands: 0, rawTokens: 0, emittedTokens: 0, savedPct: 0, holdout: { cleaned: 0, heldOut: 0 } },
    output: { ...NONE, minTurns: 30, sampleUnit: 'turns' },
    search: { ...NONE, minTurns: 20, sampleUnit: 'conversations' },
    tier: { judged: 0, fast: 0, atStakeUsd: 0, routed: 0, routedUsd: 0, escalated: 0, denied: 0 },
  })
})

const armOf = (units: number, mean: number, deviation: number): MetricArms['on'] => ({
  ...{ units, sum: units * mean },
  squares: units * (mean ** 2 + deviation ** 2),
})

t.test('both arms of a holdout are compared, and a difference is told once it can be', async t => {
  const arms: { [metric: string]: MetricArms } = {
    proseChars: { on: armOf(160, 900, 500), off: armOf(40, 1500, 700) },
    searchCalls: { on: armOf(80, 9, 4), off: armOf(21, 10, 5) },
    openingSearches: { on: armOf(80, 3, 2), off: armOf(12, 4, 3) },
  }
  const outputs: OutputSavings = {
    ...{ updatedAt: 5, commands: 90, rawTokens: 90_000, emittedTokens: 36_000 },
    perCleaner: [{ id: 'tap', commands: 3, savedTokens: 54_000 }],
    cleaned: { commands: 90, tokens: 36_000, squares: 90 * (400 ** 2 + 100 ** 2) },
    heldOut: { commands: 40, tokens: 40_000, squares: 40 * (1_000 ** 2 + 200 ** 2) },
    gaps: [{ command: 'make', commands: 1, tokens: 700 }],
  }
  const asked: object[] = []
  const fakes: SupportOptions['fakes'] = {
    'agent.savings': days => (asked.push(days), outputs),
    'agent.cohorts': () => ({ terse: 'terse-1 without 0.2', search: 'search-1 without 0.2' }),
    'usage.arms': input => (asked.push(input), arms[input.metric]!),
  }
  const { client } = await daemonWith(t, ['settings'], { fakes })
  t.match(await client.call('GET /settings/savings', {}), { output: NONE, search: NONE }, 'no experiment runs')
  asked.length = 0
  const set = { terseOutput: true, terseHoldout: 0.2, iqSearch: true, iqSearchHoldout: 0.2 }
  await client.call('POST /settings/patch', { set })
  const days = { from: '2026-11-01', to: '2026-11-30' }
  const report = await client.call('GET /settings/savings', days)
  t.same(asked, [
    days,
    { metric: 'proseChars', cohort: 'terse-1 without 0.2', ...days },
    { metric: 'searchCalls', cohort: 'search-1 without 0.2', ...days },
    { metric: 'openingSearches', cohort: 'search-1 without 0.2', ...days },
  ])
  t.match(report.input, {
    savedPct: 60,
    holdout: { cleaned: 90, heldOut: 40, measuredSavedPct: 60 },
    gaps: exactly({ command: 'make' }),
  })
  const [prose] = report.output.metrics
  t.match(prose, {
    on: { turns: 160, mean: 900 },
    off: { turns: 40, mean: 1500 },
    deltaPct: -40,
    controlTurnsNeeded: 0,
  })
  t.ok(prose!.marginPct! > 12 && prose!.marginPct! < 20, `${prose!.marginPct}`)
  t.equal(prose!.saved, 600 * 160)
  const [calls, opening] = report.search.metrics
  t.match(calls, { deltaPct: -10 })
  t.ok(calls!.marginPct! > 10 && calls!.controlTurnsNeeded! > 50, 'it may be chance')
  t.notOk('saved' in calls!, 'nothing is claimed')
  t.match(opening, { controlTurnsNeeded: 8 })
  t.notOk('deltaPct' in opening!, 'too few are not compared')
})
