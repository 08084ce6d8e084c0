import t from 'tap'
import { tierSavings, type TierLine } from '../../../plugins/settings/tier/report.js'

t.test('judged turns are summed: what easy ones cost where they ran as chosen, and what routed ones cost', t => {
  const lines: TierLine[] = [
    { costUsd: 9 },
    { costUsd: 0.1, tierScore: 0.6, tierFast: false, tierRouted: false },
    { costUsd: 0.2, tierScore: 0.1, tierFast: true, tierRouted: false },
    { costUsd: 0.1, tierScore: 0, tierFast: true, tierRouted: false, tierDenied: true },
    { costUsd: 0.01, tierScore: 0.2, tierFast: true, tierRouted: true },
    { costUsd: 0.02, tierScore: 0.2, tierFast: true, tierRouted: true, tierEscalated: true },
    { tierScore: 0.2, tierFast: true, tierRouted: true },
  ]
  t.same(tierSavings(lines), {
    judged: 6,
    fast: 5,
    atStakeUsd: 0.3,
    routed: 3,
    routedUsd: 0.03,
    escalated: 1,
    denied: 1,
  })
  t.same(tierSavings([]), { judged: 0, fast: 0, atStakeUsd: 0, routed: 0, routedUsd: 0, escalated: 0, denied: 0 })
  t.end()
})
