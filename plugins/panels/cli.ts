import type { CliTable } from '../../sdk/cli-table.js'
import type { PanelsCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<PanelsCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /panels',
      rows: 'panels',
      columns: {
        repository: 'repo',
        running: 'running',
        port: 'port',
        since: 'startedAt',
        address: { field: 'previewUrl', most: 200 },
      },
      none: 'no repositories',
    },
    get: {
      call: 'GET /panels/{repo}',
      args: ['repo'],
      columns: {
        state: { field: 'healthy', words: { true: 'answers', false: 'does not answer' } },
        running: 'running',
        port: 'port',
        address: 'previewUrl',
        since: 'startedAt',
        terminal: 'session',
        role: 'role',
      },
    },
    start: { call: 'POST /panels/{repo}/start', done: 'started {repo} on port {port}: {previewUrl}' },
    stop: { call: 'POST /panels/{repo}/stop', done: 'stopped {repo}' },
  },
}
