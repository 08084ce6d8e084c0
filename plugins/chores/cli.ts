import type { CliTable } from '../../sdk/cli-table.js'
import type { ChoresCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<ChoresCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /chores',
      args: [],
      rows: 'repos',
      columns: { repository: 'repo', measured: 'probes.id', states: 'probes.state' },
      none: 'no repositories',
    },
    probe: {
      call: 'POST /chores/probe',
      args: ['repo', 'id'],
      done: 'measuring {id} of {repo}',
      examples: ['shop outdated'],
    },
    stop: {
      call: 'POST /chores/probe/stop',
      args: ['repo', 'id'],
      done: '{stopped?stopped:nothing measured} {id} of {repo}',
      examples: ['shop outdated'],
    },
    record: { call: 'POST /chores/ledger', args: ['repo', 'chore'], done: 'recorded {chore} of {repo} as {outcome}' },
  },
}
