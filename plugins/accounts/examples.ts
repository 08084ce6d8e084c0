import type { Examples } from '../../sdk/contract.js'
import type { AccountsCalls } from './contract.js'

const HANDSHAKE = '4f1f2a3b4c5d6e7f8091a2b3c4d5e6f7'
const AT = 1_790_000_000_000
const ACCOUNT = {
  id: 'a1b2c3d4e5f6a7b8c9',
  label: 'ada@example.org',
  email: 'ada@example.org',
  connectedAt: AT,
  needsReauth: false,
}

/** One use of each call. */
export const examples = (): Examples<AccountsCalls> => ({
  'POST /accounts/{provider}/login/start': {
    input: { provider: 'anthropic', flow: 'key' },
    output: {
      url: 'https://console.anthropic.com/settings/keys',
      handshake: HANDSHAKE,
      expiresAt: AT + 900_000,
      flow: 'key',
      finish: 'key',
    },
  },
  'POST /accounts/{provider}/login/finish': {
    input: { provider: 'anthropic', handshake: HANDSHAKE, key: 'sk-example' },
    output: ACCOUNT,
  },
  'POST /accounts/{provider}/login/cancel': {
    input: { provider: 'anthropic', handshake: HANDSHAKE },
    output: { ok: true },
  },
  'GET /accounts/{provider}': { input: { provider: 'anthropic' }, output: { accounts: [ACCOUNT], signIns: [] } },
  'POST /accounts/{provider}/rename': {
    input: { provider: 'anthropic', id: ACCOUNT.id, label: 'Team' },
    output: { ...ACCOUNT, label: 'Team' },
  },
  'POST /accounts/{provider}/disconnect': {
    input: { provider: 'anthropic', id: ACCOUNT.id },
    output: { ok: true },
  },
  'GET /accounts/{provider}/limits': {
    input: { provider: 'anthropic' },
    output: {
      limits: [{ account: ACCOUNT.id, label: 'Team', room: 100, standing: 'unmeasured', windows: [] }],
      next: ACCOUNT.id,
      publishes: false,
    },
  },
  'POST /{provider}/login/start': {
    input: { provider: 'anthropic' },
    output: {
      url: 'https://console.anthropic.com/settings/keys',
      handshake: HANDSHAKE,
      expiresAt: AT + 900_000,
    },
  },
  'POST /{provider}/login/cancel': {
    input: { provider: 'anthropic', handshake: HANDSHAKE },
    output: { ok: true },
  },
  'GET /{provider}/accounts': { input: { provider: 'anthropic' }, output: { accounts: [ACCOUNT] } },
  'POST /{provider}/account/rename': {
    input: { provider: 'anthropic', id: ACCOUNT.id, label: 'Team' },
    output: { ...ACCOUNT, label: 'Team' },
  },
  'POST /{provider}/account/disconnect': {
    input: { provider: 'anthropic', id: ACCOUNT.id },
    output: { ok: true },
  },
})
