import type { CliTable } from '../../sdk/cli-table.js'
import type { RoutedCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<RoutedCalls> = {
  bare: 'status',
  verbs: {
    status: {
      call: 'GET /translator',
      columns: {
        state: 'state',
        messages: { field: 'messages', optional: true },
        'chat completions': { field: 'chatCompletions', optional: true },
        since: { field: 'since', optional: true },
        restarts: 'restarts',
        'next try': { field: 'nextTryAt', optional: true },
        detail: { field: 'detail', optional: true },
        requests: 'requests.total',
        failed: 'requests.failed',
      },
      lists: {
        serves: {
          rows: 'serves',
          columns: { provider: 'provider', protocol: 'protocol', accounts: 'accounts', models: 'models' },
        },
      },
    },
    accounts: { call: 'GET /translator/accounts', none: 'no provider is a routed one' },
    connect: {
      call: 'POST /translator/{provider}/connect',
      args: ['provider'],
      columns: {
        'open this page': 'url',
        'and enter': { field: 'code', optional: true },
        'the attempt': 'state',
        until: 'expiresAt',
      },
      examples: ['acme'],
    },
    complete: {
      call: 'POST /translator/{provider}/complete',
      args: ['provider', 'redirectUrl'],
      done: 'connected an account of {provider}',
      examples: [
        'acme "http://127.0.0.1:41721/callback?code=4f1c&state=b7a9" --state 5f0c1b7a9e2d4836a1b2c3d4e5f60718',
      ],
    },
    disconnect: {
      call: 'POST /translator/{provider}/disconnect',
      args: ['provider', 'name'],
      done: 'disconnected {name} from {provider}',
      examples: ['acme a3c1f09b2d'],
    },
  },
}
