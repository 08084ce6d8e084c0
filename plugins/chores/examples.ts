import type { Examples } from '../../sdk/contract.js'
import type { ChoreLedgerEntry, ChoresCalls, ProbeResult } from './contract.js'

const AT = 1_760_000_000_000
const OUTDATED: ProbeResult = {
  ...{ id: 'outdated', state: 'ok', ranAt: AT, tookMs: 2_400, staleAt: AT + 86_400_000 },
  facts: {
    id: 'outdated',
    packages: [{ name: 'koa', current: '2.16.1', latest: '3.0.3', kind: 'major', section: 'dependencies' }],
  },
  trend: [{ at: AT, value: 1 }],
}
const CONCLUSION: ChoreLedgerEntry = {
  ...{ repo: 'shop', chore: 'outdated', ranAt: AT, runId: 'update-koa', outcome: 'acted', digest: 'b1946ac9' },
}

/** One use of each call. */
export const examples = (): Examples<ChoresCalls> => ({
  'GET /chores': {
    input: { repo: 'shop' },
    output: {
      repos: [
        {
          repo: 'shop',
          probes: [OUTDATED],
          signals: {
            packages: [
              {
                ...{ dir: '', name: 'shop', engines: { node: '>=24' }, documented: true },
                ...{ dependencies: ['koa'], devDependencies: ['tap'] },
              },
            ],
            shape: {
              ...{ docs: ['README.md'], dockerfiles: [], ci: ['.github/workflows/test.yml'] },
              ...{ lockfile: true, packageManifest: true, deps: ['koa', 'tap'] },
            },
            hotspots: [
              {
                ...{ path: 'shop/src/cart.ts', commits: 12, adds: 340, dels: 120, complexity: 31, score: 372 },
                latestMs: AT,
              },
            ],
            keyModules: [{ path: 'shop/src/money.ts', exports: 4 }],
            totals: { files: 24, symbols: 180, complexity: 96, hotspots: 1 },
            indexed: true,
          },
        },
      ],
      ledger: [{ ...CONCLUSION, by: 'ada@example.org' }],
      running: [{ repo: 'shop', id: 'audit', askedAt: AT, startedAt: AT }],
      node: '24.11.0',
    },
  },
  'POST /chores/probe': { input: { repo: 'shop', id: 'audit' }, output: { ok: true, position: 0 } },
  'POST /chores/probe/stop': { input: { repo: 'shop', id: 'audit' }, output: { ok: true, stopped: true } },
  'POST /chores/ledger': { input: CONCLUSION, output: { ok: true } },
})
