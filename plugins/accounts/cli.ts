import type { CliTable } from '../../sdk/cli-table.js'
import type { AccountsCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<AccountsCalls> = {
  bare: 'list',
  hidden: [
    'POST /{provider}/account/disconnect',
    'GET /{provider}/accounts',
    'POST /{provider}/login/cancel',
    'POST /{provider}/login/start',
    'POST /{provider}/account/rename',
  ],
  verbs: {
    list: {
      call: 'GET /accounts/{provider}',
      rows: 'accounts',
      columns: {
        id: 'id',
        name: 'label',
        status: { field: 'needsReauth', words: { true: 'sign in again', false: 'connected' } },
        used: { field: 'usage.windows.utilization', as: 'percent' },
        'signed in': 'connectedAt',
        detail: { field: 'detail', optional: true },
      },
      none: 'no account is connected; next: {sandbox} account add {provider}',
      examples: ['anthropic'],
    },
    limits: {
      call: 'GET /accounts/{provider}/limits',
      rows: 'limits',
      columns: { account: ['label'], room: { field: 'room', as: 'percent' }, state: 'standing' },
      none: 'no accounts of this provider',
      examples: ['anthropic'],
    },
    disconnect: {
      call: 'POST /accounts/{provider}/disconnect',
      args: ['provider', 'id'],
      done: 'disconnected {id} from {provider}',
      examples: ['anthropic a1b2c3'],
    },
    rename: {
      call: 'POST /accounts/{provider}/rename',
      args: ['provider', 'id'],
      done: '{id} is called {label}',
      examples: ['anthropic a1b2c3 --label Team'],
    },
    'login-start': {
      call: 'POST /accounts/{provider}/login/start',
      args: ['provider'],
      columns: { 'open this page': 'url', 'then give': 'finish', handshake: 'handshake', until: 'expiresAt' },
      examples: ['anthropic'],
    },
    'login-finish': {
      call: 'POST /accounts/{provider}/login/finish',
      args: ['provider', 'handshake'],
      done: 'connected {label} ({id})',
    },
    'login-cancel': {
      call: 'POST /accounts/{provider}/login/cancel',
      args: ['provider', 'handshake'],
      done: 'abandoned the attempt to sign in',
    },
  },
}
