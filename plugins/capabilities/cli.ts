import type { Api } from '../../sdk/api.js'
import type { CliTable } from '../../sdk/cli-table.js'

/** The verbs of the group; several groups serve its calls. */
export const cli: CliTable<Api> = {
  bare: 'list',
  hidden: ['GET /capabilities/oauth/callback'],
  verbs: {
    list: {
      call: 'GET /capabilities',
      rows: 'capabilities',
      columns: {
        id: 'id',
        kind: 'kind',
        name: 'label',
        state: { field: 'status.state' },
        command: { field: 'config.command', optional: true },
        checked: 'status.checkedAt',
        'used by': 'usedBy',
        detail: 'status.detail',
      },
      none: 'no connections; {sandbox} capabilities catalog lists what can be connected',
      more: { suggested: 'recommendations.reason' },
    },
    catalog: {
      call: 'GET /capabilities/catalog',
      rows: 'cards',
      columns: {
        card: 'id',
        kind: 'kind',
        category: 'category',
        connected: 'connected',
        'what it is': { field: 'description', most: 80 },
        unavailable: { field: 'reason', optional: true },
      },
      none: 'nothing can be connected',
    },
    add: {
      call: 'POST /capabilities',
      args: ['id', 'kind'],
      events: { log: '{message}', progress: '{message}', state: 'now {state}', result: 'connected {id}' },
      examples: ['tracker mcp config:=\'{"url":"https://tracker.example.org/mcp"}\''],
    },
    connection: { call: 'GET /capabilities/{id}/connection', columns: { id: 'id', kind: 'kind', settings: 'config' } },
    status: {
      call: 'GET /capabilities/{id}/status',
      columns: { state: 'state', detail: 'detail', checked: 'checkedAt' },
    },
    tools: {
      call: 'GET /capabilities/{id}/tools',
      rows: 'tools',
      columns: {
        tool: 'name',
        offered: 'offered',
        'reads only': 'readOnly',
        asks: 'approve',
        'what it does': 'description',
      },
      none: 'no tools',
    },
    remove: { call: 'DELETE /capabilities/{id}', done: 'disconnected {id}' },
    rename: { call: 'POST /capabilities/{id}/rename', done: '{id} is called {to}', examples: ['tracker issues'] },
    'set-secret': {
      call: 'POST /capabilities/{id}/secret',
      done: 'replaced the secret of {id}',
      examples: ['tracker value=@token.txt'],
    },
    login: {
      call: 'POST /capabilities/{id}/login',
      columns: {
        'open this page': { field: 'url', optional: true },
        'sign in in the browser': { field: 'session', optional: true },
        handshake: { field: 'handshake', optional: true },
        until: { field: 'expiresAt', optional: true },
      },
    },
    'finish-login': {
      call: 'POST /capabilities/{id}/login/finish',
      args: ['id', 'handshake'],
      done: 'signed in: {id} is {status.state}',
    },
    otp: {
      call: 'GET /capabilities/{id}/otp',
      columns: { code: 'code', 'good for': { field: 'secondsRemaining', as: 'seconds' } },
    },
    dismiss: { call: 'DELETE /capabilities/recommendations/{card}', done: '{card} is not suggested any more' },
    marketplace: {
      call: 'POST /capabilities/marketplace',
      args: ['url'],
      rows: 'plugins',
      columns: { name: 'name', kind: 'kind', version: 'version', trust: 'trust', 'what it is': 'description' },
      none: 'nothing in this marketplace',
      examples: ['https://git.example.org/team/plugins.git'],
    },
  },
  failures: {
    'POST /capabilities': { field: 'status.state', is: ['error'] },
    'POST /capabilities/{id}/login/finish': { field: 'status.state', is: ['error'] },
  },
}
