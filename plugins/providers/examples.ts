import type { Examples } from '../../sdk/contract.js'
import type { DefinedProviderCalls } from './contract.js'

const SONNET = { id: 'claude-sonnet-4-5', label: 'Claude Sonnet 4.5', efforts: [], badges: [] }

/** One use of each call. */
export const examples = (): Examples<DefinedProviderCalls> => ({
  'GET /providers': {
    output: {
      providers: [
        {
          id: 'anthropic',
          label: 'Anthropic',
          serving: 'native',
          harnesses: ['native'],
          flows: ['key'],
          accounts: 0,
          ready: 'no-account',
          detail: 'no account of it is connected',
          default: 'claude-sonnet-4-5',
          paid: true,
        },
      ],
      problems: [],
    },
  },
  'GET /providers/{provider}/models': {
    input: { provider: 'anthropic' },
    output: { models: [SONNET], default: 'claude-sonnet-4-5', source: 'built-in' },
  },
  'GET /providers/models': {
    input: { q: 'sonnet' },
    output: {
      choices: [
        {
          provider: 'anthropic',
          providerLabel: 'Anthropic',
          model: SONNET,
          ready: false,
          reason: 'no account of it is connected',
        },
      ],
      total: 1,
    },
  },
})
