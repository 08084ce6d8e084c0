import type { Examples } from '../../sdk/contract.js'
import type { CapabilitiesCalls, CapabilityStatus } from './contract.js'

const STATUS: CapabilityStatus = { state: 'active', checkedAt: 1795384992400 }

/** One use of each call. */
export const examples = (): Examples<CapabilitiesCalls> => ({
  'GET /capabilities': {
    output: {
      capabilities: [
        {
          id: 'opencode',
          kind: 'agent',
          label: 'OpenCode',
          status: STATUS,
          config: { command: 'opencode acp', name: 'OpenCode' },
          secrets: ['env'],
          usedBy: [],
        },
      ],
      recommendations: [
        {
          card: 'gitlab',
          evidence: 'remote of services/api: gitlab.com',
          reason:
            'services/api has its remote at gitlab.com: with a token agents read its issues, changes and pipelines',
          prefill: {},
        },
      ],
    },
  },
  'DELETE /capabilities/recommendations/{card}': { input: { card: 'gitlab' }, output: { ok: true } },
  'POST /capabilities': {
    input: { id: 'opencode', kind: 'agent', config: { command: 'opencode acp', name: 'OpenCode' } },
    output: { message: { kind: 'log', message: 'starting opencode behind the wall' }, done: {} },
  },
  'DELETE /capabilities/{id}': { input: { id: 'opencode' }, output: { ok: true } },
  'POST /capabilities/{id}/rename': { input: { id: 'opencode', to: 'coder' }, output: { ok: true } },
  'POST /capabilities/{id}/secret': {
    input: { id: 'opencode', field: 'env', value: 'OPENAI_API_KEY=…' },
    output: { ok: true },
  },
  'GET /capabilities/{id}/status': { input: { id: 'opencode' }, output: STATUS },
  'POST /capabilities/{id}/login': {
    input: { id: 'tracker' },
    output: {
      kind: 'oauth',
      url: 'https://sign-in.example.org/authorize?response_type=code',
      handshake: '8a4f1e6c-3d52-4c7b-9b7e-0f6f3f1f2a90',
      expiresAt: 1795385592400,
      redirect: 'http://127.0.0.1:8787/capabilities/oauth/callback',
    },
  },
  'POST /capabilities/{id}/login/finish': {
    input: { id: 'tracker', handshake: '8a4f1e6c-3d52-4c7b-9b7e-0f6f3f1f2a90', code: 'c-1' },
    output: { ok: true, status: STATUS },
  },
  'GET /capabilities/oauth/callback': {
    input: { state: 'k0YbQm', code: 'c-1' },
    output: '<p>You are signed in. You can close this page.',
  },
  'GET /capabilities/catalog': {
    output: {
      cards: [
        {
          id: 'github',
          name: 'GitHub',
          kind: 'cli',
          category: 'code',
          description: 'Issues, pull requests and releases of GitHub with a token.',
          fields: [{ key: 'token', label: 'Access token', secret: true }],
          singleton: false,
          requires: [],
          available: true,
          connected: true,
          instances: ['github'],
        },
      ],
      categories: [{ id: 'code', label: 'Code', hint: 'Where repositories, issues and pipelines are.' }],
    },
  },
  'GET /capabilities/{id}/otp': { input: { id: 'mailbox' }, output: { code: '287082', secondsRemaining: 17 } },
  'GET /capabilities/{id}/tools': {
    input: { id: 'tracker' },
    output: {
      tools: [
        {
          name: 'find_issue',
          agentName: 'tracker__find_issue',
          description: 'Find an issue by its number.',
          input: { type: 'object', properties: { number: { type: 'integer' } } },
          readOnly: true,
          destructive: false,
          offered: true,
          approve: false,
        },
      ],
      info: { transport: 'http', capabilities: ['tools'], resources: 0, prompts: 0 },
    },
  },
})
