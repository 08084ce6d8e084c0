import type { CliTable } from '../../sdk/cli-table.js'
import type { DisksCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<DisksCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /disks',
      rows: 'disks',
      columns: {
        id: 'id',
        state: 'state',
        free: 'freeBytes',
        of: 'totalBytes',
        since: 'since',
        at: 'mountPoint',
        source: 'source',
      },
      none: 'no network disks; a connection of kind disk adds one',
    },
    read: {
      call: 'GET /disks/{id}',
      columns: {
        state: 'state',
        source: 'source',
        'mounted at': 'mountPoint',
        by: 'via',
        'read only': 'readOnly',
        free: 'freeBytes',
        of: 'totalBytes',
        since: 'since',
        'mounts by itself': 'autoMount',
        missing: 'missing',
        'used by': { field: 'users.command', none: 'nobody' },
        log: 'log',
      },
    },
    mount: {
      call: 'POST /disks/{id}/mount',
      events: { log: '{message}', state: 'now {state}', result: 'mounted {disk.id} at {disk.mountPoint}' },
    },
    unmount: { call: 'POST /disks/{id}/unmount', done: 'unmounted {id}' },
    probe: {
      call: 'POST /disks/probe',
      args: ['provider', 'server'],
      columns: { answers: 'reachable', after: 'latencyMs', 'sign-in': 'auth' },
      lists: { shares: { rows: 'shares', columns: { share: 'name', 'what it is': 'comment' } } },
      examples: ['smb nas.example.org'],
    },
  },
  failures: {
    'POST /disks/probe': { field: 'auth', is: ['refused'] },
    'POST /disks/{id}/mount': { field: 'state', is: ['failed', 'unavailable'], text: 'it is {state}' },
  },
}
