import type { CliTable } from '../../sdk/cli-table.js'
import type { PushCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<PushCalls> = {
  bare: 'config',
  verbs: {
    config: {
      call: 'GET /push/config',
      args: [],
      columns: {
        'this device': {
          field: 'subscribed',
          words: { true: 'gets notifications', false: 'gets none' },
          none: 'name one with --id',
        },
        'public key': 'publicKey',
      },
    },
    subscribe: { call: 'POST /push/subscribe', args: ['kind'], done: 'registered the device' },
    unsubscribe: { call: 'POST /push/unsubscribe', args: ['id'], done: 'removed the device {id}' },
    test: { call: 'POST /push/test', done: 'sent a test to {delivered} devices' },
  },
  failures: {
    'POST /push/test': { field: 'delivered', is: [0], text: 'no device received it' },
  },
}
