import type { CliTable } from '../../sdk/cli-table.js'
import type { HistoryCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<HistoryCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /history/snapshots',
      args: [],
      rows: 'snapshots',
      columns: { id: 'id', saved: 'at', by: ['by', 'trigger'], files: 'files', label: 'label' },
      none: 'no saved points; {sandbox} history save saves one',
    },
    save: {
      call: 'POST /history/snapshots',
      args: ['label'],
      done: '{saved?saved:nothing changed since} {id}',
      examples: ['"before the upgrade"'],
    },
    diff: {
      call: 'GET /history/diff',
      args: ['id'],
      rows: 'changes',
      columns: { repository: 'scope', path: 'path', state: 'status' },
      none: 'no changes',
    },
    'file-diff': {
      call: 'GET /history/file-diff',
      args: ['id', 'path'],
      fill: () => ({ scope: 'root' }),
      columns: { before: 'before', after: 'after' },
    },
    restore: {
      call: 'POST /history/restore',
      args: ['id'],
      done: 'restored {restored} files and removed {removed}; {sandbox} history restore {point} undoes it',
    },
  },
}
