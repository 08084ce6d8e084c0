import type { CliTable } from '../../sdk/cli-table.js'
import type { DefinedProviderCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<DefinedProviderCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /providers',
      rows: 'providers',
      columns: {
        provider: 'id',
        label: 'label',
        accounts: 'accounts',
        ready: { field: 'ready', words: { true: 'ready', 'no-account': 'connect an account' } },
        'default model': 'default',
        detail: 'detail',
      },
      none: 'no providers',
      more: { 'not loaded': 'problems.file', because: 'problems.message' },
    },
    models: {
      call: 'GET /providers/{provider}/models',
      rows: 'models',
      columns: { model: 'id', label: 'label', window: 'contextWindow', efforts: 'efforts', can: 'badges' },
      none: 'no models',
      examples: ['anthropic'],
    },
    choices: {
      call: 'GET /providers/models',
      args: [],
      rows: 'choices',
      columns: {
        agent: 'provider',
        model: { field: 'model.id', text: { 'model.id': '{model.id}{model.helperOnly? (no tools):}' } },
        window: { field: 'model.contextWindow', as: 'number' },
        'not ready': { field: 'reason', optional: true },
      },
      total: { field: 'total', text: '{left#model} more: give a part of their name' },
      none: 'no model matches; {sandbox} models --all also lists those not ready',
    },
  },
}
