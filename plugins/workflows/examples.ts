import type { Examples } from '../../sdk/contract.js'
import type { Workflow, WorkflowRun, WorkflowsCalls } from './contract.js'

const STARTED = 1795384993759
const RUN_ID = '5c0f7f3f9d614a0c8d2b'
const TOKEN = 'example-token-of-a-gate'
const URL = 'https://sandbox.example.org/workflows/release/gate'
const RELEASE: Workflow = {
  id: 'release',
  name: 'Release',
  description: 'Builds the release notes, then judges them.',
  steps: [
    {
      ...{ id: 'notes', title: 'Write the notes', needs: [], handoff: 'fresh', context: 'continue' },
      goal: 'The release notes name every change.',
      prompt: 'Write RELEASE.md from the commits since the last tag.',
      output: { kind: 'claim' },
      checks: [{ kind: 'command', command: 'test -s RELEASE.md' }],
    },
    {
      ...{ id: 'review', title: 'Judge the notes', needs: ['notes'], handoff: 'continue', context: 'continue' },
      goal: 'It is clear whether this may be released.',
      prompt: 'Compare RELEASE.md with the commits and say whether it may be released.',
      output: {
        kind: 'json',
        fields: [{ name: 'verdict', type: 'string', description: 'ship or hold', required: true }],
      },
      checks: [],
    },
  ],
  maxParallel: 2,
  maxSpendUsd: 5,
  gate: { step: 'review', field: 'verdict', pass: ['ship'] },
}
const RUN: WorkflowRun = {
  runId: RUN_ID,
  workflow: RELEASE,
  repos: [{ repo: 'root', base: '2f1d1c3b5a7e9d8c6b4a29180716253443526170' }],
  request: '{"version":"2.1.0"}',
  startedBy: 'ada@example.org',
  state: 'running',
  startedAt: STARTED,
  resumed: 0,
  costUsd: 0.12,
  steps: [
    {
      ...{ stepId: 'notes', state: 'running', conversationId: 'w-5c0f7f3f9d614a0c8d2b-notes', startedAt: STARTED },
      ...{ iterations: 1, costUsd: 0.12, loopState: 'running' },
    },
    { stepId: 'review', state: 'pending', conversationId: 'w-5c0f7f3f9d614a0c8d2b-notes', iterations: 0 },
  ],
}
const ROW = { ...RELEASE, runs: [RUN], gateTokenAt: STARTED }

/** One use of each call. */
export const examples = (): Examples<WorkflowsCalls> => ({
  'GET /workflows': { output: { workflows: [ROW], problems: [] } },
  'POST /workflows': { input: { workflow: RELEASE, create: true }, output: { ...ROW, runs: [] } },
  'DELETE /workflows/{id}': { input: { id: 'release' }, output: { ok: true } },
  'POST /workflows/{id}/run': {
    input: { id: 'release', request: '{"version":"2.1.0"}', messageId: 'release-2.1.0' },
    output: RUN,
  },
  'GET /workflows/runs': { input: { workflow: 'release', state: 'running', limit: 20 }, output: { runs: [RUN] } },
  'GET /workflows/runs/{runId}': { input: { runId: RUN_ID }, output: RUN },
  'POST /workflows/runs/{runId}/stop': { input: { runId: RUN_ID }, output: { ok: true } },
  'POST /workflows/runs/{runId}/archive': { input: { runId: RUN_ID }, output: { ok: true } },
  'POST /workflows/runs/{runId}/unarchive': { input: { runId: RUN_ID }, output: { ok: true } },
  'POST /workflows/{id}/gate': {
    input: { id: 'release', token: TOKEN, wait: 1800, body: '{"version":"2.1.0"}' },
    output: {
      ...{ outcome: 'pass', step: 'completed', runId: RUN_ID, value: 'ship' },
      reason: 'the notes name every change',
    },
  },
  'GET /workflows/{id}/gate': {
    input: { id: 'release' },
    output: { url: URL, token: TOKEN, createdAt: STARTED, lastUsedAt: STARTED, usedToday: 3, dailyMax: 50 },
  },
  'POST /workflows/{id}/gate/rotate': {
    input: { id: 'release' },
    output: { url: URL, token: TOKEN, createdAt: STARTED },
  },
})
