import type { Examples } from '../../sdk/contract.js'
import type { ShieldCalls, ShieldPolicy } from './contract.js'

const POLICY: ShieldPolicy = {
  enabled: true,
  providers: { 'endpoint/office': 'trusted' },
  defaultTrust: 'shielded',
  detectors: { geo: 'mask', 'secret-stored': 'block' },
  countries: ['DE', 'AT'],
  languages: ['de', 'en'],
  lists: [
    {
      ...{ id: 'clients', label: 'Clients', kind: 'CLIENT', values: ['Ada Lovelace'] },
      ...{ wholeWord: true, caseSensitive: false },
    },
  ],
  patterns: [{ id: 'contract', label: 'Contracts', kind: 'CONTRACT', regex: 'C-[0-9]{6}', action: 'mask' }],
  allow: ['@example.org'],
  binary: 'send',
  onFailure: 'block',
}

/** One use of each call. */
export const examples = (): Examples<ShieldCalls> => ({
  'GET /shield': {
    output: {
      policy: POLICY,
      revision: 'uKq3Yk9C4cY2',
      providers: [{ id: 'endpoint/office', label: 'Office', trust: 'trusted', why: 'policy', covered: true }],
      detectors: [
        {
          id: 'email',
          label: 'E-mail addresses',
          action: 'mask',
          confidence: 'pattern',
          examples: ['jane@example.org'],
        },
      ],
      nationalIds: [{ id: 'de-steuerid', country: 'DE', label: 'Tax number' }],
    },
  },
  'POST /shield': { input: { policy: POLICY, revision: 'b0W2' }, output: { ok: true, revision: 'uKq3Yk9C4cY2' } },
  'POST /shield/preview': {
    input: { text: 'Write to jane@example.net' },
    output: {
      trust: 'shielded',
      masked: 'Write to [[EMAIL_1]]',
      findings: [
        {
          ...{ detector: 'email', kind: 'EMAIL', start: 9, end: 25, token: '[[EMAIL_1]]', action: 'mask' },
          confidence: 'pattern',
        },
      ],
      blocked: false,
      restored: 'Write to jane@example.net',
      ms: 0.4,
    },
  },
  'GET /shield/conversations/{id}': {
    input: { id: 'release', limit: 200 },
    output: {
      tokens: [
        {
          ...{ token: '[[EMAIL_1]]', kind: 'EMAIL', detector: 'email', hint: 'j***@*******.***' },
          ...{ firstSeen: 1795392000000, uses: 4, restored: 2 },
        },
      ],
    },
  },
  'DELETE /shield/conversations/{id}': { input: { id: 'release' }, output: { ok: true, forgotten: 12 } },
  'POST /shield/restore': {
    input: { conversationId: 'release', text: 'sent to [[EMAIL_1]]' },
    output: { text: 'sent to jane@example.net', restored: 1, unknown: [] },
  },
  'POST /shield/replay': {
    input: { policy: POLICY, conversations: ['release'] },
    output: {
      ...{ conversations: 1, requests: 9, characters: 51200, truncated: false, ms: 80 },
      detectors: [
        {
          ...{ detector: 'email', masked: 3, added: 1, dropped: 0, blocked: 0, reported: 0, distinct: 2 },
          hints: ['j***@*******.***'],
        },
      ],
      providers: [{ provider: 'endpoint/office', was: 'shielded', now: 'trusted', requests: 9 }],
      refused: [],
    },
  },
  'GET /shield/stats': {
    input: { from: '2026-11-01', to: '2026-11-28' },
    output: {
      requests: { total: 40, shielded: 30, trusted: 9, blocked: 1 },
      masked: [{ kind: 'EMAIL', detector: 'email', count: 12, distinct: 3 }],
      restored: 7,
      unrestored: 0,
      perProvider: [{ provider: 'endpoint/office', requests: 40, masked: 12, blocked: 1 }],
      perDay: [{ day: '2026-11-28', masked: 12, blocked: 1 }],
      overheadMs: { p50: 0.4, p95: 2.1 },
      suggestions: [],
    },
  },
})
