import type { Examples } from '../../sdk/contract.js'
import type { UsageBudget, BudgetState, UsageCalls, UsageRow } from './contract.js'

const TOTAL: UsageRow = {
  turns: 12,
  inputTokens: 184_200,
  outputTokens: 9_310,
  cacheReadTokens: 91_000,
  cacheCreationTokens: 12_400,
  costUsd: 0.7385,
  durationMs: 412_000,
  unpriced: 0,
}
const DAILY: UsageBudget = {
  id: 'daily',
  label: 'All work of a day',
  scope: { kind: 'all' },
  period: 'day',
  limitUsd: 20,
  at: 'hold',
  enabled: true,
}
const STATE: BudgetState = {
  ...DAILY,
  spentUsd: 0.7385,
  runningUsd: 0,
  state: 'under',
  periodStart: 1795392000000,
  renewsAt: 1795478400000,
}

/** One use of each call. */
export const examples = (): Examples<UsageCalls> => ({
  'GET /usage/rollup': {
    input: { from: '2026-11-01', to: '2026-11-30', by: 'day,model' },
    output: {
      rows: [{ day: '2026-11-23', model: 'script-1', ...TOTAL }],
      total: TOTAL,
      firstDay: '2026-03-02',
    },
  },
  'GET /usage/budget': { output: { budgets: [STATE] } },
  'POST /usage/budget': { input: { budgets: [DAILY] }, output: { budgets: [STATE] } },
})
