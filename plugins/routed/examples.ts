import type { Examples } from '../../sdk/contract.js'
import type { RoutedCalls } from './contract.js'

/** One use of each call. */
export const examples = (): Examples<RoutedCalls> => ({
  'GET /translator': {
    output: {
      state: 'running',
      chatCompletions: 'http://127.0.0.1:43117/v1',
      messages: 'http://127.0.0.1:43117',
      since: 1_767_000_000_000,
      restarts: 0,
      serves: [{ provider: 'acme', protocol: 'openai', accounts: 2, models: 4 }],
      requests: { total: 12, failed: 0, retried: 1, inFlight: 1 },
    },
  },
  'GET /translator/accounts': {
    output: { acme: [{ name: 'a3c1f09b2d', label: 'Acme 1' }] },
  },
  'POST /translator/{provider}/connect': {
    input: { provider: 'acme' },
    output: {
      url: 'https://acme.example/device',
      code: 'WDJB-MJHT',
      state: '5f0c1b7a9e2d4836a1b2c3d4e5f60718',
      flow: 'device',
      expiresAt: 1_767_000_900_000,
    },
  },
  'POST /translator/{provider}/complete': {
    input: {
      provider: 'acme',
      redirectUrl: 'http://127.0.0.1:41721/callback?code=4f1c&state=b7a9',
      state: '5f0c1b7a9e2d4836a1b2c3d4e5f60718',
    },
    output: { ok: true },
  },
  'POST /translator/{provider}/disconnect': {
    input: { provider: 'acme', name: 'a3c1f09b2d' },
    output: { ok: true },
  },
})
