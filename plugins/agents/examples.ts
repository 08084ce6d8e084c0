import type { Examples } from '../../sdk/contract.js'
import type { QueuedMessage } from '../agent/contract.js'
import type { AgentCard, Agents } from './contract.js'

const ID = 'cart-total'
const RUN = 'r-670480f8a7444681b0a0'
const PATH = 'src/cart.ts'

const CARD: AgentCard = {
  id: ID,
  title: 'Add up the cart',
  status: 'ready',
  provider: 'script',
  harness: 'native',
  model: 'script',
  openedBy: 'ada@example.org',
  lastBy: 'ada@example.org',
  branch: `agent/${ID}`,
  base: 'd561808ea2',
  run: RUN,
  lastEnd: 'completed',
  attention: {
    plan: false,
    question: false,
    permission: false,
    help: false,
    service: false,
    capability: false,
    payment: false,
    conflict: false,
  },
  updatedAt: 1795384993114,
  turns: 1,
  toolUses: 1,
  diff: { files: 1, insertions: 1, deletions: 1 },
}

const WAITING: QueuedMessage = {
  messageId: 'm-tax',
  run: 'r-b69556a2cd904795be41',
  text: 'Add the tax, too.',
  attachments: [],
  mentions: [],
  by: 'ada@example.org',
  at: 1795384992821,
  why: 'parked',
  options: {},
}

const ARCHIVED: AgentCard = { ...CARD, status: 'landed', archivedAt: 1795384994422 }

/** One use of each call. */
export const examples = (): Examples<Agents> => ({
  'GET /agents': { output: { agents: [CARD], rev: 12, held: [] } },
  'GET /agents/archived': { input: { limit: 20 }, output: { agents: [ARCHIVED], rev: 13, held: [] } },
  'GET /agents/search': {
    input: { query: 'currency' },
    output: {
      matches: [{ id: ID, snippet: { text: 'Which currency?', speaker: 'agent' } }],
      scanned: 8,
      indexing: false,
    },
  },
  'GET /agents/{id}': { input: { id: ID }, output: CARD },
  'GET /agents/{id}/transcript': {
    input: { id: ID, limit: 2 },
    output: {
      messages: [
        {
          index: 0,
          role: 'user',
          text: 'Add up the prices in src/cart.ts',
          run: RUN,
          sentAt: 1795384992552,
          by: 'ada@example.org',
        },
        { index: 1, role: 'assistant', text: 'The cart adds up.', run: RUN },
      ],
      total: 2,
    },
  },
  'GET /agents/{id}/diff': {
    input: { id: ID },
    output: {
      repos: [
        {
          repo: 'root',
          branch: `agent/${ID}`,
          modules: [{ dir: '', name: 'shop' }],
          changes: [{ path: PATH, status: 'modified', additions: 1, deletions: 1, landed: false }],
        },
      ],
    },
  },
  'GET /agents/{id}/{repo}/file-diff': {
    input: { id: ID, repo: 'root', path: PATH },
    output: {
      before: 'export const total = 0\n',
      after: 'export const total = (prices) => prices.reduce((sum, price) => sum + price, 0)\n',
    },
  },
  'GET /agents/{id}/conflicts': {
    input: { id: ID },
    output: { files: [{ repo: 'root', path: PATH, reason: 'diverged', hunks: 1 }], mainBranch: { root: 'main' } },
  },
  'POST /agents/{id}/land': {
    input: { id: ID, mode: 'check', choices: [{ repo: 'root', path: PATH, take: 'agent' }] },
    output: { landed: true },
  },
  'POST /agents/land': {
    input: { ids: [ID, 'docs'] },
    output: {
      results: [
        { id: ID, result: { landed: true } },
        {
          id: 'docs',
          error: { status: 409, message: 'the agent of docs is writing: wait until its turn has ended, or pass force' },
        },
      ],
    },
  },
  'POST /agents/{id}/sync': {
    input: { id: ID },
    output: {
      repos: [{ repo: 'root', onto: '7a0c41d9be3f', commits: 2, moved: ['README.md'], overlap: [] }],
      agent: CARD,
    },
  },
  'POST /agents/{id}/discard': { input: { id: ID }, output: { ok: true } },
  'POST /agents/{id}/place': { input: { id: ID, text: 'The build is green.' }, output: { ok: true } },
  'POST /agents/{id}/rename': { input: { id: ID, title: 'Cart total' }, output: { ...CARD, title: 'Cart total' } },
  'POST /agents/{id}/auto-land': { input: { id: ID, autoLand: true }, output: { ...CARD, autoLand: true } },
  'POST /agents/{id}/resume-after-outage': {
    input: { id: ID, resumeAfterOutage: true },
    output: { ...CARD, resumeAfterOutage: true },
  },
  'POST /agents/{id}/seen': { input: { id: ID }, output: { ...CARD, seenAt: 1795384993759 } },
  'POST /agents/seen': {
    input: { ids: [ID] },
    output: { agents: [{ ...CARD, seenAt: 1795384993759 }], rev: 14, held: [] },
  },
  'POST /agents/{id}/request-land': {
    input: { id: ID },
    output: { ...CARD, landRequested: { email: 'ada@example.org', at: 1795384993735 } },
  },
  'GET /agents/{id}/queue': { input: { id: ID }, output: { messages: [WAITING], paused: false, running: RUN } },
  'DELETE /agents/{id}/queue/{messageId}': {
    input: { id: ID, messageId: 'm-tax' },
    output: { removed: WAITING, messages: [] },
  },
  'POST /agents/{id}/queue/order': {
    input: { id: ID, messageIds: ['m-tax'], start: true },
    output: { messages: [], paused: false, run: WAITING.run },
  },
  'POST /agents/archive': { input: { ids: [ID] }, output: { moved: [ARCHIVED], rev: 15 } },
  'POST /agents/unarchive': { input: { ids: [ID] }, output: { moved: [CARD], rev: 16 } },
  'POST /agents/purge': { input: { ids: [ID] }, output: { removed: [ID] } },
})
