import type { CliTable } from '../../sdk/cli-table.js'
import type { ExtensionsCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<ExtensionsCalls> = {
  bare: 'list',
  hidden: ['POST /extensions/usage', 'GET /extensions/{id}/bundle'],
  verbs: {
    list: {
      call: 'GET /extensions',
      rows: ['extensions', 'pending'],
      without: { source: 'builtin' },
      columns: {
        id: 'id',
        version: { field: 'manifest.version', none: '0.0.0' },
        from: { field: 'source', none: 'workspace' },
        state: {
          field: 'enabled',
          words: { true: '{backend.state}{backend?:on}', false: 'off' },
          none: 'waits',
        },
        update: { field: ['update.version', 'update.ref'], most: 12, optional: true },
        health: { field: 'health.state', optional: true },
        'runs from': {
          field: 'dev',
          text: { dev: '{dev.path}{dev.conversation? in the private copy of :}{dev.conversation}' },
          optional: true,
        },
        problems: { field: 'problems', text: { problems: '{problems.length}' }, optional: true },
      },
      below: [
        { rows: 'extensions', if: 'advisory', text: '{id}: warning: {advisory.reason}' },
        { rows: 'extensions', if: 'health.detail', text: '{id}: {health.detail}' },
        { rows: 'extensions', if: 'dev.held', text: '{id}: held: {dev.held}' },
        { rows: 'extensions', if: 'backend.detail', text: '{id}: {backend.detail}' },
        { rows: 'invalid', text: '{dir} cannot be used: {error}' },
        { rows: 'pending', first: true, text: 'next: {sandbox} extension review {id}' },
      ],
      none: 'no extensions; {sandbox} extension create PUBLISHER NAME makes one',
    },
    create: {
      call: 'POST /extensions/workspace',
      args: ['publisher', 'name'],
      done: 'wrote {id} into {dir}',
      examples: ['ada notes'],
    },
    approve: { call: 'POST /extensions/{id}/approve', args: ['id', 'digest'], done: 'approved what {id} asks for' },
    'set-enabled': {
      call: 'POST /extensions/{id}/enabled',
      args: ['id', 'enabled'],
      done: 'switched {enabled?on:off} {id}',
      examples: ['ada.notes off'],
    },
    install: {
      call: 'POST /extensions/install',
      args: ['url', 'ref'],
      events: { log: '{message}', result: 'installed {id}' },
    },
    'install-preview': {
      call: 'POST /extensions/install/preview',
      args: ['url', 'ref'],
      columns: {
        id: 'id',
        version: 'manifest.version',
        trust: 'trust',
        why: 'trustReason',
        'asks for': { field: 'powers', none: 'nothing' },
        fits: 'compatible',
        size: 'size.bytes',
        problems: 'problems',
        digest: 'digest',
      },
    },
    'update-preview': {
      call: 'POST /extensions/{id}/update/preview',
      columns: {
        from: 'installedVersion',
        to: 'version',
        'new powers': { field: 'powers.added', none: 'none' },
        fits: 'compatible',
        'changed files': 'changed.files',
        problems: 'problems',
        digest: 'digest',
      },
    },
    'apply-update': { call: 'POST /extensions/{id}/update', done: 'updated {id} to {ref}' },
    'check-updates': { call: 'POST /extensions/updates/check', done: 'checked for updates' },
    'set-update-policy': { call: 'POST /extensions/{id}/update-policy', done: 'changed how {id} is updated' },
    revert: { call: 'POST /extensions/{id}/revert', done: '{id} runs its earlier commit {ref}' },
    removal: {
      call: 'GET /extensions/{id}/removal',
      columns: {
        id: 'id',
        version: 'version',
        files: 'files.path',
        connections: { field: 'connections', none: 'none' },
        automations: { field: 'automations', none: 'none' },
        keeps: 'keeps',
      },
    },
    remove: { call: 'POST /extensions/{id}/remove', done: 'removed {id}' },
    settings: {
      call: 'GET /extensions/{id}/settings',
      columns: { settings: 'settings', 'secrets that are set': 'secretsSet' },
    },
    'set-settings': { call: 'POST /extensions/{id}/settings', done: 'replaced the settings of {id}' },
    readiness: {
      call: 'GET /extensions/{id}/readiness',
      rows: 'checks',
      columns: { check: 'label', state: 'status', detail: 'detail' },
      none: 'nothing was checked',
    },
    'process-start': { call: 'POST /extensions/{id}/processes/{name}/start', done: 'started {name} of {id}' },
    'process-stop': { call: 'POST /extensions/{id}/processes/{name}/stop', done: 'stopped {name} of {id}' },
    'process-status': {
      call: 'GET /extensions/{id}/processes/{name}',
      columns: { state: 'state', port: 'port', pid: 'pid', since: 'since', restarts: 'restarts', terminal: 'session' },
    },
    dev: { call: 'POST /extensions/{id}/dev', args: ['id', 'path'], done: '{id} runs from {path}' },
    'dev-reload': { call: 'POST /extensions/{id}/dev/reload', done: '{id} runs as it is built now' },
    'dev-pin': { call: 'DELETE /extensions/{id}/dev', done: '{id} runs its commit {ref} again' },
    'dev-checkouts': {
      call: 'GET /extensions/dev',
      rows: 'checkouts',
      columns: { id: 'id', folder: 'path', branch: 'branch', version: 'version', built: 'built', running: 'running' },
      none: 'no folder holds an installed extension',
    },
  },
  failures: {
    'POST /extensions/install': { field: 'backend.state', is: ['error', 'incompatible'] },
    'POST /extensions/{id}/dev': { field: 'dev.held', text: '{held}' },
    'POST /extensions/{id}/dev/reload': { field: 'dev.held', text: '{held}' },
  },
}
