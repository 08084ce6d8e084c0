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
        day: 'day',
        provider: 'provider',
        model: 'model',
        conversation: 'conversationId',
        turns: 'turns',
        in: { field: 'inputTokens', as: 'number' },
        out: { field: 'outputTokens', as: 'number' },
        took: 'durationMs',
        cost: 'costUsd',
      },
      more: { turns: 'total.turns', cost: 'total.costUsd' },
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
