import type { Examples } from '../../sdk/contract.js'
import type { ApplyRun, CliCalls } from './contract.js'

const APPLY: ApplyRun = {
  state: 'succeeded',
  startedAt: 1767225600000,
  endedAt: 1767225625000,
  by: 'ada@example.org',
  session: 'job-deployment',
  command: 'adopt',
  code: 0,
}
const LINE = { kind: 'node', phase: 'plan', state: 'done', id: 'app.shop', type: 'app', action: 'create' }

/** One short use of each call. */
export const examples = (): Examples<CliCalls> => ({
  'GET /cli': {
    output: {
      program: 'sandbox',
      version: '0.1.0',
      commands: [
        {
          args: ['deploy', 'plan'],
          summary: 'say what an apply would change on the machines',
          flags: [],
          run: 'stream',
          changes: false,
        },
      ],
      running: 0,
      apply: APPLY,
    },
  },
  'POST /cli': { input: { args: ['deploy', 'plan'] }, output: { message: LINE, done: { code: 0 } } },
  'POST /cli/apply': { output: { ok: true } },
  'GET /cli/apply/events': { output: { message: LINE, done: { apply: APPLY } } },
})
