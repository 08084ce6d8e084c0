import type { Examples } from '../../sdk/contract.js'
import type { ShareCalls, SharedConversation } from './contract.js'

const ID = 'a-parser-for-dates-k3v6xq2w5n7m4t3z2y6r5b4c3d'
const DIGEST = '1f'.repeat(32)
const SHARE: SharedConversation = {
  id: ID,
  conversationId: 'dates',
  title: 'A parser for dates',
  detail: 'messages',
  sharedAt: 1795384993759,
  messages: 4,
  pictures: 0,
  sizeBytes: 9120,
  redactions: [{ kind: 'secret', count: 1 }],
  sharedBy: 'ada@example.org',
  opened: 0,
  stale: false,
  url: `https://sandbox.example.org/s/${ID}/`,
}

/** One use of each call. */
export const examples = (): Examples<ShareCalls> => ({
  'GET /share': { input: { conversationId: 'dates' }, output: { shares: [SHARE] } },
  'POST /share/preview': {
    input: { conversationId: 'dates', detail: 'messages' },
    output: {
      title: 'A parser for dates',
      detail: 'messages',
      messages: 4,
      pictures: [],
      redactions: [{ kind: 'secret', count: 1 }],
      dropped: [],
      html: '<!doctype html>…',
      truncated: false,
      digest: DIGEST,
    },
  },
  'POST /share': {
    input: { conversationId: 'dates', title: 'A parser for dates', detail: 'messages', expect: DIGEST },
    output: SHARE,
  },
  'POST /share/update': { input: { id: ID, expiresAt: null }, output: SHARE },
  'POST /share/remove': { input: { id: ID }, output: { ok: true, removed: true } },
  'GET /s/{id}/{path}': { input: { id: ID, path: '' }, output: '<!doctype html>…' },
})
