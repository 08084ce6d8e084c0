import type { Examples } from '../../sdk/contract.js'
import type { Rule, Settings, SettingsCalls } from './contract.js'

const LINT: Rule = {
  id: 'lint',
  label: 'Lint before a push',
  moment: 'push.starting',
  when: { paths: ['src/**'] },
  action: { kind: 'command', command: 'npm run lint', timeoutMs: 120_000 },
}

const SETTINGS: Settings = {
  skills: ['release'],
  hashlineEdits: false,
  systemPromptMode: 'core',
  systemPrompt: '',
  quickModel: ['endpoint/local:qwen3'],
  agentRunModels: [],
  agentRunEffort: '',
  autoTier: 'on',
  autoTierEagerness: 'balanced',
  autoFastModels: ['endpoint/local:qwen3-small'],
  rules: [LINT],
  agentRetentionDays: 3,
  autoResumeOnRestart: true,
  resumeAfterOutage: false,
  subagentsAtOnce: 20,
  subagentsPerTurn: 200,
  subagentDepth: 3,
  network: 'own',
  networkAllow: ['localhost:5432'],
  networkOnly: false,
  admission: {
    ...{ schedule: 'allow', event: 'hold', listener: 'hold', webchat: 'hold' },
    ...{ workspace: 'allow', workflow: 'allow' },
  },
  automationFailureLimit: 3,
  commandRules: { 'git.destructive': 'deny', 'secrets.access': 'hold' },
  actionRules: { 'chat.*': 'hold' },
}

/** One use of each call. */
export const examples = (): Examples<SettingsCalls> => ({
  'GET /settings': { output: SETTINGS },
  'POST /settings': { input: { autoResumeOnRestart: true, networkAllow: ['localhost:5432'] }, output: { ok: true } },
  'POST /settings/patch': {
    input: { set: { networkAllow: ['localhost:5432'] }, unset: ['subagentDepth'] },
    output: { settings: SETTINGS, revision: 'uKq3Yk9C4cY2' },
  },
  'GET /settings/schema': {
    output: {
      revision: 'uKq3Yk9C4cY2',
      fields: [
        {
          ...{ key: 'subagentDepth', type: 'number', title: 'Depth of subagents' },
          ...{ description: 'How deep subagents may start subagents.', default: 3, min: 1, max: 10 },
          ...{ applies: 'next-turn', changed: false },
        },
      ],
      cleaners: [],
    },
  },
  'GET /settings/system-prompt/{base}': {
    input: { base: 'core' },
    output: { text: 'You are a coding agent.', version: '0.1.0' },
  },
  'GET /settings/models': {
    output: {
      roles: [
        {
          ...{ role: 'quickModel', from: 'list', configured: ['endpoint/local:qwen3'] },
          resolved: [
            {
              ...{ provider: 'endpoint/local', model: 'qwen3', usable: false },
              reason: 'no such model server is connected',
            },
          ],
        },
      ],
    },
  },
  'GET /settings/rule-firings': { output: [{ id: 'lint', at: 1764000000000, count: 2, outcome: 'blocked' }] },
  'POST /settings/rules/test': {
    input: { moment: 'push.starting', facts: { repos: ['root'], paths: ['README.md'] } },
    output: { matched: [], skipped: [{ id: 'lint', why: 'no path fits' }] },
  },
})
