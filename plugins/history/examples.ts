import type { Examples } from '../../sdk/contract.js'
import type { HistoryCalls } from './contract.js'

const ID = '7e0d6cde-94a1-4a0e-9b57-3f2b6d6f4c11'
const AT = 1795384994499

/** One use of each call. */
export const examples = (): Examples<HistoryCalls> => ({
  'GET /history/snapshots': {
    input: { limit: 1 },
    output: {
      snapshots: [
        {
          id: ID,
          at: AT,
          trigger: 'user',
          label: 'before the upgrade',
          by: 'ada@example.org',
          scopes: ['root'],
          files: 3,
        },
      ],
      before: AT,
    },
  },
  'POST /history/snapshots': { input: { label: 'before the upgrade' }, output: { id: ID, saved: true, at: AT } },
  'GET /history/diff': {
    input: { id: ID, against: 'now' },
    output: { changes: [{ scope: 'root', path: 'src/cart.ts', status: 'modified' }] },
  },
  'GET /history/file-diff': {
    input: { id: ID, scope: 'root', path: 'src/cart.ts' },
    output: { before: 'let items = 1\n', after: 'let items = 2\n' },
  },
  'POST /history/restore': {
    input: { id: ID, scope: 'root', paths: ['src'] },
    output: { ok: true, point: '1f4f3c1e-0a53-4f0e-8a52-8d8b5a4c7d20', restored: 4, removed: 1, failed: [] },
  },
})
