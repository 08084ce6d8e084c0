import type { Examples } from '../../sdk/contract.js'
import type { ActivityCalls, ActivityEvent } from './contract.js'

const STARTED: ActivityEvent = {
  seq: 1,
  at: 1795384992606,
  id: 'a-1',
  actor: 'ada@example.org',
  direction: 'system',
  type: 'turn.started',
  turnId: 'r-670480f8a7444681b0a0',
  conversationId: 'cart-total',
  outcome: 'ok',
  audience: 'viewer',
  prev: '0000000000000000000000000000000000000000000000000000000000000000',
  hash: 'c6f1784cf64ed9eb79150cf48884caeecaf893e76b087e5aea93539eaf0729b2',
}

/** One use of each call. */
export const examples = (): Examples<ActivityCalls> => ({
  'GET /activity': { input: { type: 'turn.*', limit: 50 }, output: { events: [STARTED], next: 1795384992606 } },
  'GET /activity/status': {
    output: {
      connections: [],
      bytes: 381,
      chain: { entries: 1, head: STARTED.hash, headAt: STARTED.at, intact: true, checkedAt: 1795384999000 },
    },
  },
  'GET /activity/export': {
    input: { from: 1795384990000 },
    output: `${JSON.stringify(STARTED)}\n${JSON.stringify({ kind: 'end', entries: 1, head: STARTED.hash })}\n`,
  },
})
