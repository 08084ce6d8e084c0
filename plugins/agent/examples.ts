import type { Examples } from '../../sdk/contract.js'
import type { Agent } from './contract.js'

const CONVERSATION = 'cart-total'
const RUN = 'r-670480f8a7444681b0a0'
const CARD = `${RUN}.1`

/** One use of each call. */
export const examples = (): Examples<Agent> => ({
  'POST /agent': {
    input: {
      conversationId: CONVERSATION,
      prompt: 'Add up the prices in src/cart.ts',
      isolated: true,
      permissionMode: 'default',
    },
    output: { run: RUN, conversationId: CONVERSATION, messageId: 'm-5db886486cee45f7a5f4', delivery: 'started' },
  },
  'POST /agent/attach': {
    input: { conversationId: CONVERSATION, run: RUN, after: 6 },
    output: {
      message: {
        kind: 'frame',
        seq: 7,
        event: {
          kind: 'question',
          requestId: CARD,
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
        },
      },
      done: { run: RUN, reason: 'completed' },
    },
  },
  'POST /agent/reply': {
    input: { kind: 'question', requestId: CARD, answers: { 'Which currency?': 'EUR' } },
    output: { ok: true },
  },
  'POST /agent/steer': { input: { conversationId: CONVERSATION, text: 'Round to cents.' }, output: { ok: true } },
  'POST /agent/stop': { input: { conversationId: CONVERSATION }, output: { ok: true } },
  'POST /agent/rewind': {
    input: { conversationId: CONVERSATION, index: 2 },
    output: { snapshot: 'branch:d561808ea22eb53a9362d3d0be3198616e6be7ad', dropped: 3 },
  },
  'POST /agent/switch-account': {
    input: { conversationId: CONVERSATION, agent: 'script', when: 'next' },
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
})
