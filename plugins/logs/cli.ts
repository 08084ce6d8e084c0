import type { CliTable } from '../../sdk/cli-table.js'
import type { LogsCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<LogsCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /logs',
      args: [],
      rows: 'files',
      columns: {
        name: 'name',
        kind: 'kind',
        size: 'sizeBytes',
        changed: { field: 'modifiedAt', text: { modifiedAt: '{modifiedAt}{live?, being written:}' } },
      },
      none: 'there are no logs',
    },
    read: { call: 'GET /logs/file', args: ['name'], done: '{text}', examples: ['daemon.log'] },
    follow: { call: 'GET /logs/follow', args: ['name'], examples: ['daemon.log'] },
  },
}
