import type { CliTable } from '../../sdk/cli-table.js'
import type { CliCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<CliCalls> = {
  bare: 'describe',
  verbs: {
    describe: {
      call: 'GET /cli',
      rows: 'commands',
      columns: { command: 'args', 'what it does': 'summary' },
      none: 'no commands',
    },
    run: { call: 'POST /cli', once: true, args: ['args'], examples: ['version', 'deploy plan'] },
    apply: { call: 'POST /cli/apply', done: 'the deployment is being applied; {sandbox} cli events follows it' },
    events: { call: 'GET /cli/apply/events' },
  },
}
