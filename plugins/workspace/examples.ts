import type { Examples } from '../../sdk/contract.js'
import type { TrashItem, WorkspaceCalls, WorkspaceEntry } from './contract.js'

const GENERATION = 1795384992400
const HASH = '5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03'
const TICKET = 'pXb1rQ0m7m0J4bWl3nX0m4u6c1YgJ8k2s5tZ9v3w7xA'
const MAIN: WorkspaceEntry = { name: 'main.ts', path: 'src/main.ts', type: 'file', size: 6 }

const TRASHED: TrashItem = {
  id: 'f1d2c3b4a5968778b0',
  path: 'src/old',
  type: 'dir',
  size: 6,
  files: 1,
  deletedAt: 1795384992400,
  by: 'ada@example.org',
  expiresAt: 1797976992400,
}

/** One use of each call. */
export const examples = (): Examples<WorkspaceCalls> => ({
  'GET /workspace/tree': {
    output: {
      root: 'shop',
      tree: [
        { name: 'node_modules', path: 'node_modules', type: 'dir', ignored: true },
        { name: 'src', path: 'src', type: 'dir', children: [MAIN] },
      ],
      hidden: 0,
      barren: [],
      generation: GENERATION,
      watch: 'live',
    },
  },
  'GET /workspace/children': { input: { path: 'src' }, output: { entries: [MAIN], hidden: 0 } },
  'GET /workspace/changed': {
    input: { since: GENERATION },
    output: { since: GENERATION, generation: GENERATION + 1, paths: ['src/main.ts'], reset: false },
  },
  'GET /workspace/resolve': { input: { path: 'a/src/main.ts:12' }, output: { path: 'src/main.ts' } },
  'GET /workspace/file': {
    input: { path: 'src/main.ts' },
    output: { path: 'src/main.ts', content: 'hello\n', size: 6, offset: 0, bytes: 6, shared: true },
  },
  'PUT /workspace/file': {
    input: { path: 'src/main.ts', content: 'hello\n', baseHash: 'absent' },
    output: { ok: true, path: 'src/main.ts', size: 6, hash: HASH, created: true, mtime: 1795384992400 },
  },
  'GET /workspace/raw': { input: { path: 'src/main.ts' }, output: 'hello\n' },
  'GET /workspace/search': {
    input: { query: 'openShop', mode: 'def' },
    output: {
      mode: 'def',
      total: 1,
      files: 1,
      shown: 1,
      groups: [
        {
          path: 'src/main.ts',
          score: 1040,
          hits: [
            {
              line: 3,
              text: 'export const openShop = () => {',
              spans: [{ start: 13, end: 21 }],
              tags: [{ kind: 'def', score: 1040 }],
            },
          ],
          capped: false,
        },
      ],
      freshness: { state: 'fresh', ageMs: 0 },
      truncated: false,
      partial: false,
      related: [],
      candidates: [],
      features: [],
    },
  },
  'GET /workspace/health': {
    input: { repo: 'root', since: '90d' },
    output: {
      repo: 'root',
      totals: { files: 12, symbols: 80, complexity: 140, hotspots: 1 },
      hotspots: [
        { path: 'src/main.ts', commits: 9, adds: 120, dels: 40, complexity: 20, score: 180, latestMs: GENERATION },
      ],
      modules: [{ path: 'src/shop.ts', exports: 4 }],
      freshness: { state: 'fresh', ageMs: 0 },
    },
  },
  'POST /workspace/unpack': {
    input: { path: 'photos.zip' },
    output: { ok: true, to: 'photos', files: 12, bytes: 40_000_000, skipped: [] },
  },
  'POST /workspace/upload-archive': {
    input: { to: 'docs' },
    output: { ok: true, files: 3, skipped: [{ path: 'docs/pipe', reason: 'it is a device, pipe or socket' }] },
  },
  'GET /workspace/derived': {
    input: { path: 'report.docx' },
    output: { state: 'idle', path: 'report.docx', derivable: true },
  },
  'POST /workspace/derive': {
    input: { path: 'report.docx' },
    output: {
      state: 'idle',
      path: 'report.docx',
      content: '# Report\n\nSales grew.',
      deriver: 'officeparser docx',
      derivedAt: GENERATION,
      notes: ['1 image'],
      tokens: 6,
      truncated: false,
      stale: false,
    },
  },
  'GET /workspace/classify': {
    output: { classifications: [{ path: 'report.pdf', bucket: 'documents', reason: 'magic:application/pdf' }] },
  },
  'GET /workspace/repos': { output: { repos: ['clients/shop'], skipped: [] } },
  'GET /workspace/modules': { output: { repos: [{ repo: 'clients/shop', modules: [{ dir: '', name: 'shop' }] }] } },
  'GET /workspace/repos/{repo}/graph': {
    input: { repo: 'clients/shop' },
    output: {
      packages: [
        { name: 'web', dir: 'apps/web', group: 'apps' },
        { name: 'ui', dir: 'packages/ui', group: 'packages' },
      ],
      edges: [{ from: 'web', to: 'ui', type: 'prod' }],
    },
  },
  'POST /workspace/upload': {
    input: { path: 'film.mp4', size: 6, content: 'aGVsbG8K' },
    output: { ok: true, path: 'film.mp4', received: 6, done: true, hash: HASH },
  },
  'POST /workspace/upload-diff': {
    input: { files: [{ path: 'src/main.ts', size: 6, mtime: 1795384992400 }] },
    output: { skip: ['src/main.ts'] },
  },
  'POST /workspace/media-ticket': { input: { path: 'film.mp4' }, output: { ticket: TICKET, expiresAt: 1795413792400 } },
  'GET /workspace/media': { input: { ticket: TICKET }, output: '' },
  'POST /workspace/download-ticket': {
    input: { paths: ['src', 'README.md'] },
    output: { ticket: TICKET, expiresAt: 1795385592400, filename: 'workspace.zip' },
  },
  'GET /workspace/download': { input: { ticket: TICKET }, output: '' },
  'DELETE /workspace/entry': { input: { path: 'src/old' }, output: { ok: true, trashId: TRASHED.id } },
  'GET /workspace/trash': { output: { items: [TRASHED], bytes: 6 } },
  'POST /workspace/restore': { input: { id: TRASHED.id }, output: { ok: true, path: 'src/old' } },
  'POST /workspace/move': { input: { from: 'src/main.ts', to: 'src/app.ts' }, output: { ok: true } },
  'POST /workspace/copy': { input: { from: 'src', to: 'copy' }, output: { ok: true, files: 1, bytes: 6 } },
  'POST /workspace/dir': { input: { path: 'src/lib' }, output: { ok: true } },
  'GET /workspace/setup': {
    output: {
      projects: [
        {
          dir: 'shop',
          ecosystem: 'node',
          manager: 'npm',
          command: 'npm ci',
          evidence: 'package-lock.json',
          state: 'needs-setup',
          missing: 12,
        },
      ],
    },
  },
  'POST /workspace/setup/install': {
    input: { dirs: ['shop'] },
    output: { queued: ['shop'], sessions: [{ dir: 'shop', session: 'panel-shop--install' }] },
  },
  'POST /workspace/repos/{repo}/tests': {
    input: { repo: 'shop', session: 'unit', dirs: [''] },
    output: { ok: true, session: 'panel-shop--unit', commands: [{ dir: '', command: 'npm run test' }] },
  },
  'GET /workspace/templates': {
    output: {
      templates: [
        {
          key: 'node-server',
          label: 'Node server',
          description: 'An HTTP server in JavaScript without dependencies, with a test.',
          kind: 'app',
        },
      ],
      source: 'built-in',
    },
  },
  'POST /workspace/repos/{repo}/apps': {
    input: { repo: 'shop', apps: [{ template: 'node-server', name: 'api' }] },
    output: { ok: true, session: 'panel-shop--add_apps' },
  },
  'GET /workspace/repos/{repo}/apps': {
    input: { repo: 'shop' },
    output: { apps: [{ app: 'api', running: true, healthy: true, port: 41873, session: 'panel-shop--api' }] },
  },
  'POST /workspace/repos/{repo}/apps/{app}/start': {
    input: { repo: 'shop', app: 'api' },
    output: { ok: true, session: 'panel-shop--api', port: 41873 },
  },
  'POST /workspace/repos/{repo}/apps/{app}/stop': { input: { repo: 'shop', app: 'api' }, output: { ok: true } },
})
