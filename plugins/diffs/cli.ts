import type { CliInput, CliTable } from '../../sdk/cli-table.js'
import type { DiffsCalls } from './contract.js'

/** Where nothing else is named: uncommitted work of the first repository. */
const working = ({ source = 'working' }: CliInput): CliInput => ({
  source,
  repo: 'root',
  ...(source === 'working' && { side: 'unstaged' }),
})

/** The verbs of the group. */
export const cli: CliTable<DiffsCalls> = {
  bare: 'documents',
  verbs: {
    documents: {
      call: 'GET /diff/documents',
      args: [],
      fill: working,
      rows: 'documents',
      columns: { path: 'path', kind: 'kind', 'shown as text': 'renderable' },
      none: 'no documents were changed',
    },
    rendered: {
      call: 'GET /diff/rendered',
      args: ['path'],
      fill: working,
      examples: ['docs/report.docx'],
      columns: { path: 'path', 'the same': 'same', changes: 'unified' },
    },
    raw: { call: 'GET /diff/raw', args: ['path'], fill: working },
  },
}
