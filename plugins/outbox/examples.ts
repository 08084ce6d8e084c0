import type { Examples } from '../../sdk/contract.js'
import type { OutboxCalls } from './contract.js'

const URL = 'https://sandbox.example.org/p/k3v6xq2w5n7m4t3z2y6r5b4c3d'

/** One use of each call. */
export const examples = (): Examples<OutboxCalls> => ({
  'GET /public': {
    input: { limit: 100 },
    output: {
      url: URL,
      reach: 'public',
      files: [
        {
          path: 'report/index.html',
          size: 18211,
          modifiedAt: 1795384993759,
          url: `${URL}/report/index.html`,
          source: 'docs/report/index.html',
          publishedBy: 'ada@example.org',
          publishedAt: 1795384993801,
          opened: 12,
        },
      ],
      totalBytes: 18211,
    },
  },
  'POST /public/publish': {
    input: { path: 'docs/report', expiresAt: 1795989793759 },
    output: {
      path: 'report',
      url: `${URL}/report/`,
      files: 1,
      bytes: 18211,
      blocked: [{ path: '.env', reason: 'hidden' }],
      digest: '1f'.repeat(32),
    },
  },
  'POST /public/unpublish': { input: { path: 'report' }, output: { ok: true } },
  'POST /public/rotate': { output: { url: 'https://sandbox.example.org/p/b2c3d4e5f6g7h2j3k4m5n6p7q2' } },
  'GET /p/{slot}/{path}': {
    input: { slot: 'k3v6xq2w5n7m4t3z2y6r5b4c3d', path: 'report/index.html' },
    output: '<!doctype html>…',
  },
})
