import type { CliTable } from '../../sdk/cli-table.js'
import type { InventoryCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<InventoryCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /inventory',
      rows: 'entries',
      columns: {
        name: 'name',
        kind: 'kind',
        what: ['provider', 'service', 'values.source'],
        on: { field: 'on', optional: true },
        'exposed by': { field: 'expose', optional: true },
        'used by': { field: 'usedBy', optional: true },
      },
      none: 'no entries; inventory add adds one',
    },
    kinds: {
      call: 'GET /inventory/kinds',
      rows: 'kinds',
      columns: { kind: 'kind', id: 'id', options: 'options.key', 'what it is': 'description' },
    },
    add: {
      call: 'POST /inventory',
      args: ['kind', 'name'],
      ids: {},
      done: '{name} is in the inventory',
      examples: [
        'backend home --provider host --values \'{"address":"home.example.org","user":"deploy"}\'',
        'app shop --on home --expose home --values \'{"source":"shop","port":8080}\'',
      ],
    },
    remove: { call: 'DELETE /inventory/{name}', done: '{name} is not in the inventory' },
  },
}
