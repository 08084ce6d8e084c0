import type { Examples } from '../../sdk/contract.js'
import { EXAMPLE_CONVERSATION, EXAMPLE_RUN } from '../../sdk/node/example-card.js'
import type { SessionRow } from '../agent/contract.js'
import type { SessionCalls } from './contract.js'

const ROW: SessionRow = {
  id: EXAMPLE_CONVERSATION,
  title: 'Add up the prices in src/cart.ts',
  updatedAt: 1795384999231,
  startedAt: 1795384992606,
  state: 'discarded',
  provider: 'script',
  harness: 'native',
  total: 2,
  openedBy: 'ada@example.org',
}

/** One use of each call. */
export const examples = (): Examples<SessionCalls> => ({
  'GET /sessions': {
    input: { query: 'to the cent', limit: 20 },
    output: {
      sessions: [{ ...ROW, snippet: { text: 'Round to the cent.', speaker: 'agent' } }],
      next: `1795384999231.${EXAMPLE_CONVERSATION}`,
      indexing: false,
    },
  },
  'GET /sessions/{id}': {
    input: { id: EXAMPLE_CONVERSATION },
    output: {
      ...ROW,
      messages: [
        {
          index: 0,
          role: 'user',
          text: 'Add up the prices in src/cart.ts',
          run: EXAMPLE_RUN,
          sentAt: 1795384992606,
          by: 'ada@example.org',
        },
        { index: 1, role: 'assistant', text: 'Round to the cent.', run: EXAMPLE_RUN },
      ],
    },
  },
  'DELETE /sessions/{id}': { input: { id: EXAMPLE_CONVERSATION }, output: { ok: true } },
})
