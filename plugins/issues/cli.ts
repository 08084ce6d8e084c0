import type { CliTable } from '../../sdk/cli-table.js'
import type { IssuesCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<IssuesCalls> = {
  bare: 'list',
  hidden: ['POST /ingest/api/{project}/envelope/', 'POST /ingest/api/{project}/store/'],
  verbs: {
    list: {
      call: 'GET /issues',
      args: [],
      rows: 'issues',
      columns: { id: 'id', state: 'state', times: 'count', users: 'users', 'last seen': 'lastSeen', what: 'title' },
      none: 'no issues',
      examples: ['--state open'],
    },
    get: {
      call: 'GET /issues/{id}',
      columns: {
        what: 'issue.title',
        state: 'issue.state',
        level: 'issue.level',
        times: 'issue.count',
        users: 'issue.users',
        'first seen': 'issue.firstSeen',
        'last seen': 'issue.lastSeen',
        file: 'issue.location.path',
        line: 'issue.location.line',
        release: 'issue.lastRelease',
      },
      lists: { events: { rows: 'events', columns: { id: 'id', when: 'at', level: 'level', release: 'release' } } },
    },
    fix: {
      call: 'POST /issues/{id}/fix',
      args: ['id'],
      done: 'an agent works on {id}: {sandbox} attach {conversationId} follows it',
    },
    'set-state': {
      call: 'POST /issues/state',
      args: ['state', 'ids'],
      done: '{issues.id}: {state}',
      examples: ['resolved iss_0a1b2c3d4e5f60718293'],
    },
    seen: { call: 'POST /issues/seen', done: 'marked all issues as seen' },
    reporters: {
      call: 'GET /issues/reporters',
      rows: 'reporters',
      columns: {
        id: 'id',
        label: 'label',
        on: 'enabled',
        repository: 'repo',
        'last event': { field: 'lastEventAt', none: 'never' },
        today: 'today.accepted',
        dsn: { field: 'dsn', most: 200 },
      },
      none: 'no reporters; {sandbox} issues save-reporter LABEL makes one',
    },
    'save-reporter': {
      call: 'POST /issues/reporters',
      args: ['label'],
      done: 'saved the reporter {id}',
      columns: { dsn: 'dsn' },
      examples: ['Shop --repo shop'],
    },
    'remove-reporter': {
      call: 'DELETE /issues/reporters/{id}',
      ids: { id: 'reporters' },
      done: 'removed the reporter {id}, and {purged} issues',
    },
  },
}
