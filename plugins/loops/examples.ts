import type { Examples } from '../../sdk/contract.js'
import type { Loop, LoopDesign, LoopsCalls, LoopStart } from './contract.js'

const START: LoopStart = {
  conversationId: 'fix-tests',
  goal: 'Every test passes.',
  prompt: 'Run the tests, and repair the first one that fails.',
  isolated: true,
  context: 'fresh',
  output: { kind: 'claim' },
  checks: [{ kind: 'command', command: 'npm test', timeoutMs: 300000 }],
  maxIterations: 20,
  maxSpendUsd: 5,
  stallLimit: 3,
}
const LOOP: Loop = {
  ...START,
  state: 'running',
  startedAt: 1795384993759,
  startedBy: 'ada@example.org',
  resumed: 0,
  costUsd: 0.12,
  iterations: [
    {
      n: 1,
      at: 1795385093759,
      outcome: 'continue',
      detail: '2 tests fail',
      costUsd: 0.12,
      changed: true,
      run: 'r-5c0f7f3f9d614a0c8d2b',
      sessionId: 'native-fix-tests',
      document: { done: true, reason: 'the first test passes' },
      checks: [{ kind: 'command', ok: false, detail: '2 tests fail' }],
    },
  ],
}
const DESIGN: LoopDesign = {
  id: 'green',
  name: 'Until the tests pass',
  description: 'Repairs one test a round.',
  context: START.context,
  output: START.output,
  checks: START.checks,
  maxIterations: 20,
  stallLimit: 3,
}

/** One use of each call. */
export const examples = (): Examples<LoopsCalls> => ({
  'GET /loops': { input: { state: 'running', limit: 50 }, output: { loops: [LOOP] } },
  'POST /loops': { input: START, output: { ...LOOP, costUsd: 0, iterations: [] } },
  'GET /loops/{conversationId}': { input: { conversationId: 'fix-tests' }, output: LOOP },
  'POST /loops/{conversationId}/stop': { input: { conversationId: 'fix-tests', now: true }, output: { ok: true } },
  'POST /loops/{conversationId}/resume': {
    input: { conversationId: 'fix-tests', maxIterations: 40, note: 'Leave the browser tests out.' },
    output: { ...LOOP, maxIterations: 40 },
  },
  'GET /loops/designs': { output: { designs: [DESIGN], problems: [] } },
  'POST /loops/designs': { input: { design: DESIGN, create: true }, output: DESIGN },
  'DELETE /loops/designs/{id}': { input: { id: 'green' }, output: { ok: true } },
})
