import type { Examples } from '../../sdk/contract.js'
import type { Automation, AutomationRow, AutomationsCalls, HeldWake } from './contract.js'

const NIGHTLY: Automation = {
  id: 'nightly',
  trigger: { kind: 'schedule', cron: '0 3 * * *', timeZone: 'Europe/Berlin' },
  guard: 'git log --since=1.day --oneline | grep -q .',
  prompt: 'Read the commits of the last day and write docs/changes.md.',
  enabled: true,
}
const CONVERSATION = 'a-nightly-mx3k2c00'
const RUN = 'r-5c0f7f3f9d614a0c8d2b'
const ROW: AutomationRow = {
  ...NIGHTLY,
  runs: [
    {
      at: 1795384993759,
      outcome: 'completed',
      conversationId: CONVERSATION,
      run: RUN,
      durationMs: 8120,
      costUsd: 0.04,
      cause: 'schedule',
    },
  ],
  nextRun: 1795471200000,
  failures: 0,
}
const HELD: HeldWake = {
  id: 'h-1f0c7f3f9d614a0c8d2b',
  automationId: 'deploy',
  reason: 'every fire of it waits for a person',
  payload: '{"tag":"v1.4.0"}',
  createdAt: 1795384993759,
}
const TOKEN = {
  url: 'https://sandbox.example/automations/deploy/fire',
  token: 'dGhpcyBpcyBhbiBleGFtcGxlLCBub3QgYSB0b2tlbg',
  createdAt: 1795384993759,
}

const THREAD = 'q0wX7f3d9hYk2LmN'

/** One use of each call. */
export const examples = (): Examples<AutomationsCalls> => ({
  'GET /automations': { output: { automations: [ROW], problems: [] } },
  'GET /automations/{id}': { input: { id: 'nightly', limit: 50 }, output: ROW },
  'POST /automations': { input: NIGHTLY, output: { ok: true } },
  'GET /automations/catalog': {
    output: {
      sources: [],
      templates: [],
      workspaceEvents: [{ value: 'agent.landed', label: 'An agent landed work' }],
    },
  },
  'POST /automations/preview': {
    input: { trigger: NIGHTLY.trigger, guard: 'test -f package.json', runGuard: true },
    output: {
      nextRuns: [1795471200000, 1795557600000, 1795644000000, 1795730400000, 1795816800000],
      words: 'every day at 03:00 (Europe/Berlin)',
      guard: { pass: true, exitCode: 0, durationMs: 12 },
    },
  },
  'POST /automations/{id}/enabled': { input: { id: 'nightly', enabled: false }, output: { ok: true } },
  'DELETE /automations/{id}': { input: { id: 'nightly' }, output: { ok: true } },
  'POST /automations/{id}/run': {
    input: { id: 'nightly' },
    output: { ok: true, conversationId: CONVERSATION, run: RUN },
  },
  'POST /automations/{id}/fire': {
    input: { id: 'deploy', token: TOKEN.token, wait: 30, body: '{"tag":"v1.4.0"}' },
    output: { ok: true, conversationId: 'a-deploy-mx3k2c00', run: RUN, step: 'completed', report: 'Deployed v1.4.0.' },
  },
  'GET /automations/{id}/token': { input: { id: 'deploy' }, output: TOKEN },
  'POST /automations/{id}/token/rotate': { input: { id: 'deploy' }, output: TOKEN },
  'GET /automations/pending': { output: { approvals: [HELD] } },
  'POST /automations/pending/{id}/approve': {
    input: { id: HELD.id },
    output: { ok: true, conversationId: 'a-deploy-mx3k2c00', run: RUN },
  },
  'POST /automations/pending/{id}/reject': { input: { id: HELD.id, reason: 'not today' }, output: { ok: true } },
  'GET /webchat/widget.js': { output: '(() => {})()\n' },
  'GET /webchat/{id}/config': {
    input: { id: 'support' },
    output: {
      automationId: 'support',
      title: 'Ask us',
      greeting: 'What can we help with?',
      accent: '#2563eb',
      position: 'bottom-right',
      access: 'public',
      requireName: false,
      antiBot: 'pow',
      maxLength: 8000,
    },
  },
  'GET /webchat/{id}/challenge': {
    input: { id: 'support', conversation: THREAD },
    output: {
      salt: '1795384993759.16-r4nd0mr4nd0mr4nd0mr4.c2lnbmVkLCBhbiBleGFtcGxlLCBub3QgYSBwdXp6bGUgYXQ',
      difficulty: 16,
      expiresAt: 1795385893759,
    },
  },
  'POST /webchat/{id}/message': {
    input: { id: 'support', conversationId: THREAD, messageId: 'm-1', content: 'Do you ship to Norway?' },
    output: { message: { kind: 'delta', seq: 1, text: 'Yes, ' }, done: { seq: 2 } },
  },
  'GET /webchat/{id}/stream': {
    input: { id: 'support', conversation: THREAD, visitor: TOKEN.token, after: 1 },
    output: {
      message: { kind: 'message', seq: 2, from: 'agent', text: 'Yes, we do.', at: 1795384993759 },
      done: { seq: 2 },
    },
  },
})
