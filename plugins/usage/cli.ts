import type { CliTable } from '../../sdk/cli-table.js'
import type { UsageCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<UsageCalls> = {
  bare: 'rollup',
  verbs: {
    rollup: {
      call: 'GET /usage/rollup',
      args: [],
      rows: 'rows',
      columns: {
        day: { field: 'day', optional: true },
        provider: { field: 'provider', none: '-', optional: true },
        account: { field: 'account', none: '-', optional: true },
        model: { field: 'model', none: '-', optional: true },
        harness: { field: 'harness', none: '-', optional: true },
        conversation: { field: 'conversationId', none: '-', optional: true },
        persona: { field: 'persona', none: '-', optional: true },
        turns: { field: 'turns', as: 'number' },
        in: { field: 'inputTokens', as: 'number' },
        out: { field: 'outputTokens', as: 'number' },
        'cache read': { field: 'cacheReadTokens', as: 'number' },
        'cache written': { field: 'cacheCreationTokens', as: 'number' },
        took: 'durationMs',
        cost: 'costUsd',
      },
      more: {
        turns: { field: 'total.turns', as: 'number' },
        in: { field: 'total.inputTokens', as: 'number' },
        out: { field: 'total.outputTokens', as: 'number' },
        'cache read': { field: 'total.cacheReadTokens', as: 'number' },
        'cache written': { field: 'total.cacheCreationTokens', as: 'number' },
        took: 'total.durationMs',
        cost: 'total.costUsd',
      },
      below: [{ rows: 'total', if: 'unpriced', text: 'the price of {unpriced#turn} is unknown' }],
      none: 'no usage in this time',
    },
    budget: {
      call: 'GET /usage/budget',
      rows: 'budgets',
      columns: {
        id: 'id',
        period: 'period',
        spent: 'spentUsd',
        of: 'limitUsd',
        state: 'state',
        renews: 'renewsAt',
        label: 'label',
      },
      none: 'no budgets',
    },
    'set-budget': {
      call: 'POST /usage/budget',
      args: [],
      rows: 'budgets',
      columns: { id: 'id', period: 'period', spent: 'spentUsd', of: 'limitUsd', state: 'state' },
      none: 'no budgets any more',
      examples: ['budgets:=[]'],
    },
  },
}
