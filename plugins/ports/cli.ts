import type { CliTable } from '../../sdk/cli-table.js'
import type { PortsCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<PortsCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /ports',
      rows: 'ports',
      columns: {
        port: 'port',
        what: 'title',
        by: 'origin',
        command: { field: 'command', most: 40 },
        address: { field: 'previewUrl', none: 'not forwarded', most: 200 },
      },
      none: 'no ports: nothing listens',
    },
    forward: {
      call: 'POST /ports/forward',
      args: ['port'],
      done: 'forwarded port {port}: {previewUrl}',
      examples: ['3000'],
    },
    unforward: {
      call: 'POST /ports/unforward',
      args: ['port'],
      done: 'port {port} is not forwarded any more',
      examples: ['3000'],
    },
  },
}
