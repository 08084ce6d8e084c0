import type { Examples } from '../../sdk/contract.js'
import type { SafetyCalls, SafetyDecision, SafetyPolicy, SafetyRule, SafetyVerdict } from './contract.js'

const RULE: SafetyRule = {
  id: 'no-main',
  label: 'No pushes to main',
  target: 'command',
  match: { class: 'git.publish', regex: '\\bmain\\b' },
  verdict: 'deny',
  message: 'push a branch and open a pull request',
}
const POLICY: SafetyPolicy = {
  prose: 'Never touch the production cluster.',
  judge: {
    mode: 'off',
    ask: ['git.destructive', 'infra.destructive'],
    actions: true,
    models: [],
    timeoutMs: 15_000,
    onFailure: 'hold',
  },
  rules: [RULE],
  outsideFloor: true,
}
const DECISION: SafetyDecision = {
  verdict: 'deny',
  by: 'rule',
  ruleId: 'no-main',
  classes: ['git.publish', 'network.outbound'],
  reason: 'the rule no-main (No pushes to main) denies it',
}
const VERDICT: SafetyVerdict = {
  ...DECISION,
  id: 'v-0mg6zq2k0-0001',
  at: 1795392000000,
  subject: { kind: 'command', text: 'git push origin main' },
  conversationId: 'release',
  run: 'r-7',
  unattended: true,
  outcome: 'refused',
  policyRevision: 'uKq3Yk9C4cY2',
}

/** One use of each call. */
export const examples = (): Examples<SafetyCalls> => ({
  'GET /safety': {
    output: {
      policy: POLICY,
      revision: 'uKq3Yk9C4cY2',
      classes: [{ class: 'git.publish', label: 'Push to a remote', setting: 'hold', examples: ['git push'] }],
      judge: { available: false, reason: 'no model server is connected' },
      reviewed: { right: 4, wrong: 1 },
    },
  },
  'POST /safety': { input: { policy: POLICY, revision: 'b0W2' }, output: { ok: true, revision: 'uKq3Yk9C4cY2' } },
  'POST /safety/test': {
    input: { subject: { kind: 'command', text: 'git push origin main' }, context: { unattended: true } },
    output: {
      decision: DECISION,
      steps: [{ step: 1, matched: false, detail: 'classes git.publish, network.outbound; no setting denies one' }],
    },
  },
  'POST /safety/replay': {
    input: { policy: POLICY },
    output: {
      replayed: 120,
      from: 1795392000000,
      truncated: false,
      counts: [{ was: 'allow', now: 'deny', count: 1 }],
      unjudged: 0,
      changes: [
        {
          at: 1795392000000,
          subject: { kind: 'command', text: 'git push origin main' },
          unattended: false,
          was: 'allow',
          now: 'deny',
          by: 'rule',
          ruleId: 'no-main',
          reason: 'the rule no-main (No pushes to main) denies it',
        },
      ],
    },
  },
  'GET /safety/verdicts': { input: { verdict: 'deny', limit: 50 }, output: { verdicts: [VERDICT] } },
  'POST /safety/verdicts/{id}/review': {
    input: { id: 'v-0mg6zq2k0-0001', correct: true, note: 'as it should be' },
    output: { ok: true },
  },
})
