import type { CliTable } from '../../sdk/cli-table.js'
import type { AutomationsCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<AutomationsCalls> = {
  bare: 'list',
  // Browsers of visitors make these calls, and other programs.
  hidden: [
    'POST /automations/{id}/fire',
    'GET /webchat/widget.js',
    'GET /webchat/{id}/config',
    'GET /webchat/{id}/challenge',
    'POST /webchat/{id}/message',
    'GET /webchat/{id}/stream',
  ],
  verbs: {
    list: {
      call: 'GET /automations',
      rows: 'automations',
      columns: {
        id: 'id',
        on: 'enabled',
        fires: ['trigger.cron', 'trigger.event', 'trigger.kind'],
        'next run': { field: 'nextRun', none: '' },
        'last run': 'runs.0.at',
        failures: 'failures',
        prompt: { field: 'prompt', most: 40 },
      },
      none: 'no automations; {sandbox} automations save writes one',
      more: { 'not read': 'problems.id', because: 'problems.message' },
    },
    get: {
      call: 'GET /automations/{id}',
      columns: {
        on: 'enabled',
        fires: 'trigger',
        guard: 'guard',
        prompt: 'prompt',
        'waits for a yes': 'requireApproval',
        'next run': 'nextRun',
        failures: 'failures',
      },
      lists: {
        runs: {
          rows: 'runs',
          columns: {
            when: 'at',
            outcome: 'outcome',
            cause: 'cause',
            took: 'durationMs',
            cost: 'costUsd',
            conversation: 'conversationId',
          },
        },
        'sites that loaded the chat': {
          rows: 'installs',
          columns: {
            site: 'origin',
            'on the list': 'allowed',
            loaded: 'loads',
            refused: 'refused',
            'last seen': 'lastSeenAt',
          },
        },
      },
    },
    save: {
      call: 'POST /automations',
      args: ['id', 'prompt'],
      fill: () => ({ enabled: true }),
      done: 'saved {id}',
      examples: ['nightly "Write docs/changes.md." trigger:=\'{"kind":"schedule","cron":"0 3 * * *"}\''],
    },
    remove: { call: 'DELETE /automations/{id}', done: 'removed {id}' },
    run: { call: 'POST /automations/{id}/run', done: 'fired {id}: {sandbox} attach {conversationId} follows it' },
    'set-enabled': {
      call: 'POST /automations/{id}/enabled',
      args: ['id', 'enabled'],
      done: 'switched {enabled?on:off} {id}',
      examples: ['nightly off'],
    },
    preview: {
      call: 'POST /automations/preview',
      args: [],
      columns: {
        fires: 'words',
        'next runs': 'nextRuns',
        'guard lets it fire': 'guard.pass',
        'the guard took': 'guard.durationMs',
      },
      examples: ['trigger:=\'{"kind":"schedule","cron":"0 3 * * *"}\''],
    },
    pending: {
      call: 'GET /automations/pending',
      rows: 'approvals',
      columns: {
        id: 'id',
        automation: 'automationId',
        since: 'createdAt',
        why: 'reason',
        payload: { field: 'payload' },
        'for --expect': { field: 'digest', most: 64 },
      },
      none: 'no wakes wait for a yes',
    },
    approve: {
      call: 'POST /automations/pending/{id}/approve',
      ids: { id: 'pending' },
      done: 'released {id}: {sandbox} attach {conversationId} follows it',
    },
    reject: { call: 'POST /automations/pending/{id}/reject', ids: { id: 'pending' }, done: 'threw {id} away' },
    catalog: {
      call: 'GET /automations/catalog',
      columns: {
        'events of the workspace': 'workspaceEvents.value',
        sources: { field: 'sources.provider', none: 'none' },
        templates: { field: 'templates.id', none: 'none' },
      },
    },
    'token-reveal': {
      call: 'GET /automations/{id}/token',
      columns: { address: 'url', token: 'token', made: 'createdAt' },
    },
    'token-rotate': {
      call: 'POST /automations/{id}/token/rotate',
      done: 'made a new token for {id}; the old one stopped working',
      columns: { address: 'url', token: 'token' },
    },
  },
  failures: {
    'POST /automations/{id}/run': { field: 'skipped', text: 'it did not run: {skipped}', refused: true },
    'POST /automations/pending/{id}/approve': { field: 'skipped', text: 'it did not run: {skipped}', refused: true },
    'POST /automations/{id}/fire': [
      { field: 'skipped', text: 'it did not run: {skipped}', refused: true },
      { field: 'step', is: ['failed', 'timeout'], text: 'the turn ended as {step}' },
    ],
  },
}
