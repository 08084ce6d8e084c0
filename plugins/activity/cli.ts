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
        what: 'type',
        who: { field: 'actor', none: 'sandbox' },
        conversation: { field: 'conversationId', optional: true },
        about: { field: ['title', 'content'], as: 'prose', optional: true },
        call: { field: 'endpoint', text: { endpoint: '{method} {endpoint}' }, optional: true },
        provider: { field: 'provider', optional: true },
        details: { field: 'extra', optional: true },
        outcome: { field: 'outcome', text: { outcome: '{outcome}{error?, :}{error}' }, optional: true },
      },
      reversed: true,
      none: 'no entries match',
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
