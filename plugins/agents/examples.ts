import type { Examples } from '../../sdk/contract.js'
import { EXAMPLE_ARCHIVED_CARD, EXAMPLE_CARD, EXAMPLE_CONVERSATION } from '../../sdk/node/example-card.js'
import type { Agents } from './contract.js'

const PATH = 'src/cart.ts'
const TIP = '7a0c41d9be3f5d1c2b8e6f4a90d37c15e8b2f604'

/** An example of each call. */
export const examples = (): Examples<Agents> => ({
  'GET /agents': { output: { agents: [EXAMPLE_CARD], rev: 12, held: [] } },
  'GET /agents/archived': { input: { limit: 20 }, output: { agents: [EXAMPLE_ARCHIVED_CARD], rev: 13, held: [] } },
  'GET /agents/{id}': { input: { id: EXAMPLE_CONVERSATION }, output: EXAMPLE_CARD },
  'GET /agents/{id}/diff': {
    input: { id: EXAMPLE_CONVERSATION },
    output: {
      repos: [
        {
          repo: 'root',
          branch: `agent/${EXAMPLE_CONVERSATION}`,
          tip: TIP,
          modules: [{ dir: '', name: 'shop' }],
          changes: [{ path: PATH, status: 'modified', additions: 1, deletions: 1, landed: false }],
        },
      ],
    },
  },
  'GET /agents/{id}/{repo}/file-diff': {
    input: { id: EXAMPLE_CONVERSATION, repo: 'root', path: PATH },
    output: {
      before: 'export const total = 0\n',
      after: 'export const total = (prices) => prices.reduce((sum, price) => sum + price, 0)\n',
    },
  },
  'GET /agents/{id}/conflicts': {
    input: { id: EXAMPLE_CONVERSATION },
    output: { files: [{ repo: 'root', path: PATH, reason: 'diverged', hunks: 1 }], mainBranch: { root: 'main' } },
  },
  'POST /agents/{id}/land': {
    input: {
      id: EXAMPLE_CONVERSATION,
      mode: 'check',
      choices: [{ repo: 'root', path: PATH, take: 'agent' }],
      expect: { root: TIP },
    },
    output: { landed: true },
  },
  'POST /agents/land': {
    input: { ids: [EXAMPLE_CONVERSATION, 'docs'] },
    output: {
      results: [
        { id: EXAMPLE_CONVERSATION, result: { landed: true } },
        {
          id: 'docs',
          error: { status: 409, message: 'the agent of docs is writing: wait until its turn has ended, or pass force' },
        },
      ],
    },
  },
  'POST /agents/{id}/sync': {
    input: { id: EXAMPLE_CONVERSATION },
    output: {
      repos: [{ repo: 'root', onto: '7a0c41d9be3f', commits: 2, moved: ['README.md'], overlap: [] }],
      agent: EXAMPLE_CARD,
    },
  },
  'POST /agents/{id}/discard': {
    input: { id: EXAMPLE_CONVERSATION, expect: { root: TIP } },
    output: { ok: true },
  },
})
