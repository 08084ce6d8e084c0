import type { CliTable } from '../../sdk/cli-table.js'
import type { VpnCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<VpnCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /vpn',
      rows: 'links',
      columns: {
        id: 'id',
        state: 'state',
        gateway: 'gateway',
        address: 'address',
        since: 'since',
        'by itself': 'autoConnect',
      },
      none: 'no tunnels; a connection of kind vpn adds one',
    },
    read: {
      call: 'GET /vpn/{id}',
      columns: {
        state: 'state',
        gateway: 'gateway',
        interface: 'interface',
        address: 'address',
        routes: 'routes',
        since: 'since',
        received: 'rxBytes',
        sent: 'txBytes',
        'last handshake': 'handshakeAt',
        missing: 'missing',
        log: 'log',
      },
    },
    connect: {
      call: 'POST /vpn/{id}/connect',
      events: { log: '{message}', state: 'now {state}', result: 'connected {link.id}: {link.address}' },
    },
    disconnect: { call: 'POST /vpn/{id}/disconnect', done: 'disconnected {id}' },
    'import-forticlient': {
      call: 'POST /vpn/import-forticlient',
      args: [],
      rows: 'connections',
      columns: { id: 'id', name: 'label', server: 'server' },
      none: 'no connections in this file',
      examples: ['xml=@vpn.xml'],
    },
  },
  failures: {
    'POST /vpn/{id}/connect': { field: 'state', is: ['failed', 'unavailable'], text: 'it is {state}' },
  },
}
