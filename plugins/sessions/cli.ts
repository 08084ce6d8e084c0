import type { CliTable } from '../../sdk/cli-table.js'
import type { SessionCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<SessionCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /sessions',
      args: [],
      rows: 'sessions',
      columns: {
        id: 'id',
        state: 'state',
        messages: 'total',
        updated: 'updatedAt',
        title: { field: 'title', most: 50 },
      },
      none: 'no conversation was recorded yet',
    },
    get: {
      call: 'GET /sessions/{id}',
      args: ['id'],
      columns: {
        title: 'title',
        state: 'state',
        started: 'startedAt',
        by: 'openedBy',
        provider: 'provider',
        messages: 'total',
      },
      lists: {
        messages: { rows: 'messages', columns: { '#': 'index', role: 'role', text: { field: 'text', most: 400 } } },
      },
    },
    remove: { call: 'DELETE /sessions/{id}', done: 'removed the record of {id}' },
  },
}
