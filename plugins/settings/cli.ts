import type { CliTable } from '../../sdk/cli-table.js'
import type { SettingsCalls } from './contract.js'

/** Both sides of an experiment, and what is missing. */
const EXPERIMENT = {
  measure: 'metric',
  with: 'on.turns',
  mean: { field: 'on.mean', as: 'number' },
  without: 'off.turns',
  'mean without': { field: 'off.mean', as: 'number' },
  'difference, %': { field: 'deltaPct', none: 'not yet' },
  'give or take, %': { field: 'marginPct', none: '-' },
  'still missing': 'controlTurnsNeeded',
} as const

/** The verbs of the group. */
export const cli: CliTable<SettingsCalls> = {
  bare: 'get',
  verbs: {
    get: { call: 'GET /settings' },
    set: { call: 'POST /settings', args: [], done: 'saved the settings', examples: ['--agent-retention-days 7'] },
    patch: {
      call: 'POST /settings/patch',
      args: [],
      done: 'changed the settings',
      examples: ['set:=\'{"subagentDepth":4}\'', '--unset subagentDepth'],
    },
    schema: {
      call: 'GET /settings/schema',
      rows: 'fields',
      columns: {
        key: 'key',
        type: 'type',
        default: { field: 'default', most: 20 },
        changed: 'changed',
        'what it does': { field: 'title', most: 80 },
      },
      none: 'no settings',
    },
    models: {
      call: 'GET /settings/models',
      rows: 'roles',
      columns: { job: 'role', from: 'from', models: 'resolved.model', usable: 'resolved.usable' },
      none: 'no automatic jobs',
    },
    savings: {
      call: 'GET /settings/savings',
      columns: {
        commands: { field: 'input.commands', as: 'number' },
        'tokens of their output': { field: 'input.rawTokens', as: 'number' },
        'tokens read': { field: 'input.emittedTokens', as: 'number' },
        'saved, %': { field: 'input.savedPct', as: 'number' },
      },
      lists: {
        cleaners: {
          rows: 'input.perCleaner',
          columns: { cleaner: 'id', commands: 'commands', 'tokens saved': { field: 'savedTokens', as: 'number' } },
        },
        'short answers': { rows: 'output.metrics', columns: EXPERIMENT },
        search: { rows: 'search.metrics', columns: EXPERIMENT },
        'long outputs that stay': {
          rows: 'input.gaps',
          columns: { command: 'command', commands: 'commands', tokens: { field: 'tokens', as: 'number' } },
        },
      },
      examples: ['--from 2026-11-01'],
    },
    firings: {
      call: 'GET /settings/rule-firings',
      rows: '',
      columns: { rule: 'id', when: 'at', times: 'count', outcome: 'outcome' },
      none: 'no rule did anything yet',
    },
    'test-rules': {
      call: 'POST /settings/rules/test',
      args: ['moment'],
      columns: { 'would act': { field: 'matched.id', none: 'none' } },
      lists: { 'would not act': { rows: 'skipped', columns: { rule: 'id', why: 'why' } } },
    },
    'builtin-prompt': {
      call: 'GET /settings/system-prompt/{base}',
      columns: { version: 'version', text: 'text' },
      examples: ['core'],
    },
  },
}
