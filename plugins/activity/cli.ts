import type { CliTable } from '../../sdk/cli-table.js'
import type { ActivityCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<ActivityCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /activity',
      args: [],
      rows: 'events',
      columns: {
        when: 'at',
        who: 'actor',
        what: 'type',
        outcome: 'outcome',
        conversation: 'conversationId',
        about: ['title', 'content', 'error'],
      },
      none: 'nothing happened yet',
      examples: ['--since 2d'],
    },
    status: {
      call: 'GET /activity/status',
      columns: {
        record: { field: 'chain.intact', words: { true: 'intact', false: 'broken' } },
        entries: 'chain.entries',
        checked: 'chain.checkedAt',
        size: { field: 'bytes', as: 'size' },
        head: 'chain.head',
        'last entry': 'chain.headAt',
        'outside sources': { field: 'connections.capabilityId', none: 'none' },
      },
    },
    export: { call: 'GET /activity/export', args: [], examples: ['--from 7d'] },
  },
}
