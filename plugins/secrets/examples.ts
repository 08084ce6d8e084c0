import type { Examples } from '../../sdk/contract.js'
import type { SecretsCalls } from './contract.js'

/** One use of each call. */
export const examples = (): Examples<SecretsCalls> => ({
  'POST /secrets': { input: { key: 'API_TOKEN', value: 'tr0ub4dor&3' }, output: { ok: true } },
  'GET /secrets': { output: { keys: ['API_TOKEN', 'DATABASE_URL'] } },
  'DELETE /secrets/{key}': { input: { key: 'API_TOKEN' }, output: { ok: true, removed: true } },
  'GET /secrets/inventory': {
    output: {
      entries: [
        {
          key: 'API_TOKEN',
          kind: 'env',
          status: 'set',
          requiredBy: [],
          storedAt: "the sandbox's encrypted store",
          revealable: true,
          hosts: ['api.example.org'],
          lastUse: { at: 1795384994499, lane: 'shell', detail: 'curl -H "x-key: {{secret:API_TOKEN}}"' },
        },
      ],
    },
  },
  'POST /secrets/reveal': { input: { key: 'API_TOKEN' }, output: { value: 'tr0ub4dor&3' } },
  'GET /secrets/store': {
    output: {
      configured: true,
      kind: 'vault',
      unlock: 'file',
      locked: false,
      keys: 2,
      choices: [
        { kind: 'vault', unlock: 'file', available: true },
        { kind: 'vault', unlock: 'passphrase', available: true },
        {
          kind: 'vault',
          unlock: 'keyring',
          available: false,
          reason: 'expected the program secret-tool and found none',
        },
        { kind: 'dotenv', available: true },
      ],
    },
  },
  'POST /secrets/store': { input: { kind: 'vault', unlock: 'file' }, output: { ok: true, moved: 0 } },
  'POST /secrets/generate': {
    input: { key: 'DEPLOY_KEY', recipe: { kind: 'ssh-key', comment: 'deploy' } },
    output: {
      ok: true,
      rotated: false,
      publicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAmBxBEFyfB3FwjC7hs1dx1cOo/yzFJvnVkTh1BtUCZ1 deploy',
    },
  },
  'POST /secrets/import': {
    input: { path: '.env' },
    output: { added: ['DATABASE_URL'], replaced: [], skipped: [{ key: 'API_TOKEN', reason: 'exists' }] },
  },
  'POST /secrets/ci': {
    input: { targets: [{ repo: 'services/api' }] },
    output: {
      results: [
        { repo: 'services/api', key: 'API_TOKEN', status: 'pushed' },
        { repo: 'services/api', key: 'NPM_TOKEN', status: 'failed', detail: 'nothing is stored under NPM_TOKEN' },
      ],
      stale: [],
    },
  },
  'GET /secrets/uses': {
    input: { limit: 1 },
    output: {
      uses: [
        {
          id: 'u41',
          at: 1795384994499,
          name: 'API_TOKEN',
          lane: 'shell',
          detail: 'curl -H "x-key: {{secret:API_TOKEN}}"',
          conversationId: 'fix-login',
          by: 'conversation:fix-login',
        },
      ],
      next: 'u41',
    },
  },
})
