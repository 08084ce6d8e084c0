import type { Examples } from '../../sdk/contract.js'
import type { ExtensionManifest, ExtensionsCalls } from './contract.js'

const ID = 'ada.notes'
const MANIFEST: ExtensionManifest = { publisher: 'ada', name: 'notes', version: '1.2.0', server: 'server.js' }
const DIGEST = '4f'.repeat(32)
const REF = '9c'.repeat(20)
const SOURCE = { url: 'https://git.example.org/ada/notes.git', ref: REF }

/** One use of each call. */
export const examples = (): Examples<ExtensionsCalls> => ({
  'GET /capabilities/{id}/connection': {
    input: { id: 'tracker' },
    output: {
      id: 'tracker',
      kind: 'mcp',
      config: { url: 'https://tracker.example.org/mcp', token: '{{secret:tracker/token}}' },
    },
  },
  'POST /capabilities/marketplace': {
    input: { url: 'https://git.example.org/team/registry.git' },
    output: {
      name: 'team',
      plugins: [
        {
          name: ID,
          kind: 'extension',
          description: 'Notes beside the code.',
          version: '1.2.0',
          trust: 'verified',
          admitted: true,
          install: SOURCE,
          installed: { id: ID, ref: REF },
        },
      ],
    },
  },
  'GET /extensions': {
    output: {
      extensions: [
        {
          id: ID,
          manifest: MANIFEST,
          commit: '8b1a9953c461',
          source: 'workspace',
          enabled: true,
          essential: false,
          usage: { 'GET /agents': { calls: 3, last: '2026-01-05T09:00:00.000Z' } },
          backend: { state: 'running' },
          problems: [],
        },
      ],
      invalid: [],
      pending: [],
    },
  },
  'POST /extensions/workspace': {
    input: { publisher: 'ada', name: 'notes' },
    output: { id: ID, dir: '.sandbox/config/workspace-extensions/notes' },
  },
  'GET /extensions/{id}/removal': {
    input: { id: ID },
    output: {
      id: ID,
      name: 'notes',
      version: '1.2.0',
      source: 'workspace',
      files: [{ path: '.sandbox/config/workspace-extensions/notes', detail: '4 files of the workspace' }],
      connections: [],
      settings: [],
      processes: [],
      automations: [],
      rebuildNeeded: false,
      keeps: ['files that it wrote into the workspace stay'],
    },
  },
  'POST /extensions/{id}/remove': {
    input: { id: ID },
    output: { ok: true, connections: [], rebuildNeeded: false },
  },
  'GET /extensions/{id}/settings': {
    input: { id: ID },
    output: { settings: { greeting: 'Hello' }, secretsSet: ['token'] },
  },
  'POST /extensions/{id}/settings': {
    input: { id: ID, settings: { greeting: 'Good morning' } },
    output: { ok: true },
  },
  'POST /extensions/{id}/approve': { input: { id: ID, digest: DIGEST }, output: { ok: true } },
  'POST /extensions/{id}/enabled': { input: { id: ID, enabled: false }, output: { ok: true } },
  'POST /extensions/usage': { input: { reports: { [ID]: { 'GET /agents': 2 } } }, output: { ok: true } },
  'GET /extensions/{id}/bundle': {
    input: { id: ID },
    output: 'export const activate = host => document.body.append(host.id)\n',
  },
  'GET /extensions/{id}/readiness': {
    input: { id: ID },
    output: {
      checks: [{ id: 'files', label: 'Every promised file is there', status: 'pass', detail: '4 files' }],
    },
  },
  'POST /extensions/install/preview': {
    input: SOURCE,
    output: {
      ...{ id: ID, manifest: MANIFEST, ref: REF, trust: 'verified', compatible: true },
      ...{ powers: ['runs a backend process, contained behind a wall'], digest: DIGEST, problems: [] },
      size: { files: 4, bytes: 5120 },
    },
  },
  'POST /extensions/install': {
    input: { ...SOURCE, digest: DIGEST },
    output: {
      message: { kind: 'result', id: ID, commit: REF, rebuildNeeded: false, backend: { state: 'starting' } },
      done: {},
    },
  },
  'POST /extensions/updates/check': { output: { ok: true, checkedAt: '2026-01-05T09:00:00.000Z' } },
  'POST /extensions/{id}/update/preview': {
    input: { id: ID },
    output: {
      ...{ ref: REF, version: '1.3.0', installedVersion: '1.2.0', engines: '^1.0', compatible: true },
      powers: { added: [], removed: [], unchanged: ['runs a backend process, contained behind a wall'] },
      ...{ digest: DIGEST, problems: [], changed: { files: 2, insertions: 31, deletions: 4 } },
    },
  },
  'POST /extensions/{id}/update': { input: { id: ID }, output: { ok: true, ref: REF } },
  'POST /extensions/{id}/revert': { input: { id: ID }, output: { ok: true, ref: REF } },
  'POST /extensions/{id}/update-policy': { input: { id: ID, updates: 'auto' }, output: { ok: true } },
  'GET /extensions/{id}/processes/{name}': {
    input: { id: ID, name: 'web' },
    output: {
      ...{ name: 'web', running: true, state: 'running', session: 'proc-ada-notes-web' },
      ...{ pid: 4211, port: 40123, since: 1767603600000, restarts: 0 },
    },
  },
  'POST /extensions/{id}/processes/{name}/start': { input: { id: ID, name: 'web' }, output: { ok: true } },
  'POST /extensions/{id}/processes/{name}/stop': { input: { id: ID, name: 'web' }, output: { ok: true } },
  'GET /extensions/dev': {
    output: {
      checkouts: [
        {
          ...{ id: ID, path: 'notes', branch: 'main', revision: DIGEST, uncommitted: 2, version: '1.2.0' },
          ...{ built: true, stale: false, running: true, source: 'installed' },
        },
      ],
    },
  },
  'POST /extensions/{id}/dev': {
    input: { id: ID, path: 'notes' },
    output: { ok: true, dev: { path: 'notes', uncommitted: 2, revision: DIGEST } },
  },
  'DELETE /extensions/{id}/dev': { input: { id: ID }, output: { ok: true, ref: REF } },
  'POST /extensions/{id}/dev/reload': {
    input: { id: ID },
    output: { ok: true, dev: { path: 'notes', uncommitted: 3, revision: DIGEST } },
  },
})
