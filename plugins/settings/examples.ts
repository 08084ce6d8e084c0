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
  stableSystemPrompt: false,
  terseOutput: true,
  terseHoldout: 0.2,
  iqSearch: false,
  iqSearchHoldout: 0,
  workspaceMap: true,
  outputCleaners: '',
  outputHoldout: 0.1,
  draftLandedMessages: true,
  changelogRepos: ['root'],
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
  searchModel: '',
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
      cleaners: [{ id: 'git', label: 'What git says while it transfers, and its hints', commands: ['git'] }],
    },
  },
  'GET /settings/savings': {
    input: { from: '2026-11-01' },
    output: {
      input: {
        ...{ updatedAt: 1764000000000, commands: 412, rawTokens: 981_000, emittedTokens: 402_000, savedPct: 59 },
        perCleaner: [{ id: 'node-packages', commands: 31, savedTokens: 210_000 }],
        holdout: { cleaned: 412, heldOut: 47, measuredSavedPct: 55.2 },
        gaps: [{ command: 'npx storybook', commands: 3, tokens: 9_100 }],
      },
      output: {
        metrics: [
          {
            ...{ metric: 'proseChars', on: { turns: 160, mean: 910 }, off: { turns: 41, mean: 1_480 } },
            ...{ controlTurnsNeeded: 0, marginPct: 18.4, deltaPct: -38.5, saved: 91_200 },
          },
        ],
        ...{ minTurns: 30, sampleUnit: 'turns', cohort: 'terse-1 without 0.2' },
      },
      search: { metrics: [], minTurns: 20, sampleUnit: 'conversations', cohort: '' },
      tier: { judged: 0, fast: 0, atStakeUsd: 0, routed: 0, routedUsd: 0, escalated: 0, denied: 0 },
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
