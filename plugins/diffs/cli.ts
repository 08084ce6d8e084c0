import type { CliTable } from '../../sdk/cli-table.js'
import type { DiffsCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<DiffsCalls> = {
  bare: 'documents',
  verbs: {
    documents: {
      call: 'GET /diff/documents',
      args: [],
      fill: () => ({ source: 'work' }),
      rows: 'documents',
      columns: { path: 'path', kind: 'kind', 'shown as text': 'renderable' },
      none: 'no documents were changed',
    },
    rendered: {
      call: 'GET /diff/rendered',
      args: ['source', 'path'],
      columns: { path: 'path', 'the same': 'same', changes: 'unified' },
    },
    raw: { call: 'GET /diff/raw', args: ['source', 'path'] },
  },
}
