import type { Examples } from '../../sdk/contract.js'
import type { Settings, SettingsCalls } from './contract.js'

const SETTINGS: Settings = {
  skills: ['release'],
  hashlineEdits: false,
  agentRetentionDays: 3,
  autoResumeOnRestart: true,
  resumeAfterOutage: false,
  subagentsAtOnce: 20,
  subagentsPerTurn: 200,
  subagentDepth: 3,
  network: 'own',
  networkAllow: ['localhost:5432'],
  networkOnly: false,
  admission: { schedule: 'allow', event: 'hold', listener: 'hold', workspace: 'allow', workflow: 'allow' },
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
})
