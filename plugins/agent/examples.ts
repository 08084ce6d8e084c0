import type { Examples } from '../../sdk/contract.js'
import { EXAMPLE_ARCHIVED_CARD, EXAMPLE_CARD, EXAMPLE_CONVERSATION, EXAMPLE_RUN } from '../../sdk/node/example-card.js'
import type { Agent, BackgroundCommand, QuestionCard, QueuedMessage } from './contract.js'

const REQUEST = `${EXAMPLE_RUN}.1`

const QUESTION: QuestionCard = {
  kind: 'question',
  requestId: REQUEST,
  questions: [
    {
      question: 'Which currency?',
      header: 'Currency',
      multiSelect: false,
      options: [
        { label: 'EUR', description: 'as in the rest of the shop' },
        { label: 'USD', description: 'as in the tests' },
      ],
    },
  ],
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

const SERVER: BackgroundCommand = {
  conversationId: EXAMPLE_CONVERSATION,
  id: 'sh-1',
  command: 'npm start',
  startedAt: 1795384992821,
  run: EXAMPLE_RUN,
  running: true,
}

/** One use of each call. */
export const examples = (): Examples<Agent> => ({
  'POST /agent': {
    input: {
      conversationId: EXAMPLE_CONVERSATION,
      prompt: 'Add up the prices in src/cart.ts',
      isolated: true,
      permissionMode: 'default',
    },
    output: {
      run: EXAMPLE_RUN,
      conversationId: EXAMPLE_CONVERSATION,
      messageId: 'm-5db886486cee45f7a5f4',
      delivery: 'started',
    },
  },
  'POST /agent/attach': {
    input: { conversationId: EXAMPLE_CONVERSATION, run: EXAMPLE_RUN, after: 6 },
    output: {
      message: {
        kind: 'frame',
        seq: 7,
        event: QUESTION,
      },
      done: { run: EXAMPLE_RUN, reason: 'completed' },
    },
  },
  'GET /agent/cards': {
    output: {
      cards: [{ conversationId: EXAMPLE_CONVERSATION, run: EXAMPLE_RUN, raisedAt: 1795384992801, card: QUESTION }],
    },
  },
  'POST /agent/reply': {
    input: { kind: 'question', requestId: REQUEST, answers: { 'Which currency?': 'EUR' } },
    output: { ok: true },
  },
  'POST /agent/steer': {
    input: { conversationId: EXAMPLE_CONVERSATION, text: 'Round to cents.' },
    output: { ok: true },
  },
  'POST /agent/stop': {
    input: { conversationId: EXAMPLE_CONVERSATION },
    output: { ok: true, stopped: 'turn', ended: 0, running: 1 },
  },
  'GET /agent/processes': { input: {}, output: { processes: [SERVER] } },
  'GET /agent/processes/{conversationId}/{id}': {
    input: { conversationId: EXAMPLE_CONVERSATION, id: 'sh-1' },
    output: { ...SERVER, text: 'listening on http://localhost:3000\n', from: 0, to: 35 },
  },
  'DELETE /agent/processes/{conversationId}/{id}': {
    input: { conversationId: EXAMPLE_CONVERSATION, id: 'sh-1' },
    output: { ok: true },
  },
  'POST /agent/rewind': {
    input: { conversationId: EXAMPLE_CONVERSATION, index: 2 },
    output: { snapshot: 'branch:d561808ea22eb53a9362d3d0be3198616e6be7ad', dropped: 3 },
  },
  'POST /agent/switch-account': {
    input: { conversationId: EXAMPLE_CONVERSATION, agent: 'script', when: 'next' },
    output: { applied: 'next', kept: 'record' },
  },
  'GET /agent/commands': {
    input: { agent: 'script' },
    output: { commands: [{ name: 'help', description: 'Shows the language of this provider.' }] },
  },
  'GET /agent/refusals': {
    output: {
      refusals: {
        script: { at: 1795384992552, kind: 'limit', message: 'the limit of five hours is spent; it renews at 18:00' },
      },
    },
  },
  'GET /agents/search': {
    input: { query: 'currency' },
    output: {
      matches: [{ id: EXAMPLE_CONVERSATION, snippet: { text: 'Which currency?', speaker: 'agent' } }],
      scanned: 8,
      indexing: false,
    },
  },
  'GET /agents/{id}/transcript': {
    input: { id: EXAMPLE_CONVERSATION, limit: 2 },
    output: {
      messages: [
        {
          index: 0,
          role: 'user',
          text: 'Add up the prices in src/cart.ts',
          run: EXAMPLE_RUN,
          sentAt: 1795384992552,
          by: 'ada@example.org',
        },
        { index: 1, role: 'assistant', text: 'The cart adds up.', run: EXAMPLE_RUN },
      ],
      total: 2,
    },
  },
  'POST /agents/{id}/place': { input: { id: EXAMPLE_CONVERSATION, text: 'The build is green.' }, output: { ok: true } },
  'POST /agents/{id}/rename': {
    input: { id: EXAMPLE_CONVERSATION, title: 'Cart total' },
    output: { ...EXAMPLE_CARD, title: 'Cart total' },
  },
  'POST /agents/{id}/auto-land': {
    input: { id: EXAMPLE_CONVERSATION, autoLand: true },
    output: { ...EXAMPLE_CARD, autoLand: true },
  },
  'POST /agents/{id}/resume-after-outage': {
    input: { id: EXAMPLE_CONVERSATION, resumeAfterOutage: true },
    output: { ...EXAMPLE_CARD, resumeAfterOutage: true },
  },
  'POST /agents/{id}/seen': { input: { id: EXAMPLE_CONVERSATION }, output: { ...EXAMPLE_CARD, seenAt: 1795384993759 } },
  'POST /agents/seen': {
    input: { ids: [EXAMPLE_CONVERSATION] },
    output: { agents: [{ ...EXAMPLE_CARD, seenAt: 1795384993759 }], rev: 14, held: [] },
  },
  'POST /agents/{id}/request-land': {
    input: { id: EXAMPLE_CONVERSATION },
    output: { ...EXAMPLE_CARD, landRequested: { email: 'ada@example.org', at: 1795384993735 } },
  },
  'POST /agents/archive': {
    input: { ids: [EXAMPLE_CONVERSATION] },
    output: { moved: [EXAMPLE_ARCHIVED_CARD], rev: 15 },
  },
  'POST /agents/unarchive': { input: { ids: [EXAMPLE_CONVERSATION] }, output: { moved: [EXAMPLE_CARD], rev: 16 } },
  'POST /agents/purge': { input: { ids: [EXAMPLE_CONVERSATION] }, output: { removed: [EXAMPLE_CONVERSATION] } },
  'GET /agents/{id}/queue': {
    input: { id: EXAMPLE_CONVERSATION },
    output: { messages: [WAITING], paused: false, running: EXAMPLE_RUN },
  },
  'DELETE /agents/{id}/queue/{messageId}': {
    input: { id: EXAMPLE_CONVERSATION, messageId: 'm-tax' },
    output: { removed: WAITING, messages: [] },
  },
  'POST /agents/{id}/queue/order': {
    input: { id: EXAMPLE_CONVERSATION, messageIds: ['m-tax'], start: true },
    output: { messages: [], paused: false, run: WAITING.run },
  },
})
