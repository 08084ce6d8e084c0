import type { Examples } from '../../sdk/contract.js'
import type { Need, NeedsCalls } from './contract.js'

const ASKED = {
  conversationId: 'first',
  kind: 'information',
  title: 'Which region?',
  why: 'The deployment script asks for a region, and nothing in the repository names one.',
} as const
const OPEN: Need = {
  ...ASKED,
  ...{ id: 'n-1', status: 'open', raisedBy: 'conversation:first', raisedAt: 1_760_000_000_000, run: 'r-1' },
  fields: [{ key: 'answer', label: 'Answer', type: 'text', required: true }],
  allowed: { give: true },
}
const GIVEN: Need = {
  ...OPEN,
  ...{ status: 'given', settledBy: 'ada@example.org', settledAt: 1_760_000_100_000, continued: 'r-2' },
  answers: { answer: 'eu-west-1' },
}

/** One use of each call. */
export const examples = (): Examples<NeedsCalls> => ({
  'GET /needs': { input: { status: 'open' }, output: { needs: [OPEN], open: 1 } },
  'GET /needs/{id}': { input: { id: 'n-1' }, output: OPEN },
  'POST /needs': { input: ASKED, output: OPEN },
  'POST /needs/{id}/give': {
    input: { id: 'n-1', answers: { answer: 'eu-west-1' } },
    output: { need: GIVEN, run: 'r-2' },
  },
  'POST /needs/{id}/decline': {
    input: { id: 'n-1', reason: 'Nobody decided that yet.' },
    output: { need: { ...OPEN, status: 'declined', note: 'Nobody decided that yet.' } },
  },
})
