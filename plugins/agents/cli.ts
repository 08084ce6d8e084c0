import type { Api } from '../../sdk/api.js'
import type { CliColumns, CliSentence, CliTable } from '../../sdk/cli-table.js'
import type { QueuedWhy } from '../agent/contract.js'

const WHY = {
  'no-mid-turn-words': 'the agent accepts no messages during a turn',
  parked: 'the turn waits for an answer',
  stopping: 'the turn is stopping',
  'other-options': 'it asks for other options',
  errand: 'it is an errand',
  'behind-others': 'others wait before it',
  budget: 'a budget is spent',
} satisfies { readonly [why in QueuedWhy]: string }

const QUEUE: CliColumns = {
  message: 'messageId',
  by: 'by',
  sent: { field: 'at', as: 'past' },
  'waits because': { field: 'why', words: WHY },
  words: { field: 'text', as: 'prose' },
}
const PAUSED: readonly CliSentence[] = [
  { rows: '', if: 'paused', text: 'paused; {sandbox} queue {id} --start resumes' },
]

/** The verbs of the group; several groups serve its calls. */
export const cli: CliTable<Api> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /agents',
      rows: 'agents',
      columns: {
        conversation: 'id',
        status: 'status',
        changes: {
          field: ['diff', 'branch'],
          text: { diff: '{diff.files#file} +{diff.insertions} -{diff.deletions}', branch: '' },
          none: 'shared tree',
        },
        updated: { field: 'updatedAt', as: 'past' },
        title: { field: 'title', as: 'prose', most: 50 },
      },
      below: [{ rows: 'agents.cards', text: '{of.id} asks: {title}  ({sandbox} answer {requestId} …)' }],
      none: 'no conversations yet; {sandbox} run "/demo" starts one',
    },
    archived: {
      call: 'GET /agents/archived',
      args: [],
      rows: 'agents',
      columns: {
        conversation: 'id',
        archived: { field: 'archivedAt', as: 'past' },
        title: { field: 'title', as: 'prose', most: 50 },
      },
      none: 'nothing is archived',
    },
    get: {
      call: 'GET /agents/{id}',
      columns: {
        title: 'title',
        status: 'status',
        branch: 'branch',
        files: 'diff.files',
        'lines added': 'diff.insertions',
        'lines removed': 'diff.deletions',
        turns: 'turns',
        model: 'model',
        provider: 'provider',
        'started by': 'openedBy',
        updated: 'updatedAt',
        id: 'id',
      },
    },
    search: {
      call: 'GET /agents/search',
      args: ['query'],
      rows: 'matches',
      columns: { conversation: 'id', by: 'snippet.speaker', found: 'snippet.text' },
      none: 'nothing found',
      examples: ['"cart total"'],
    },
    transcript: {
      call: 'GET /agents/{id}/transcript',
      rows: 'messages',
      columns: { '#': 'index', role: 'role', said: 'sentAt', text: { field: 'text', most: 400 } },
      none: 'nothing was said yet',
    },
    diff: {
      call: 'GET /agents/{id}/diff',
      rows: 'repos',
      columns: { repository: 'repo', branch: 'branch', files: 'changes.length', paths: 'changes.path' },
      none: 'no changes',
    },
    'file-diff': {
      call: 'GET /agents/{id}/{repo}/file-diff',
      args: ['id', 'path'],
      fill: () => ({ repo: 'root' }),
      columns: { before: 'before', after: 'after' },
      examples: ['c-1 src/cart.ts'],
    },
    conflicts: {
      call: 'GET /agents/{id}/conflicts',
      rows: 'files',
      columns: { repository: 'repo', path: 'path', why: 'reason', places: 'hunks' },
      none: 'no conflicts: it would land',
    },
    land: {
      call: 'POST /agents/{id}/land',
      done: '{landed?landed:did not land} {id}',
      lists: {
        conflicts: { rows: 'conflicts', columns: { repository: 'repo', paths: 'paths' } },
        'ignored by git': { rows: 'ignored', columns: { repository: 'repo', paths: 'paths' } },
        'submodules now on': { rows: 'moved', columns: { repository: 'repo', commit: 'commit' } },
      },
    },
    'land-many': {
      call: 'POST /agents/land',
      args: [],
      rows: 'results',
      columns: { conversation: 'id', landed: 'result.landed', why: 'error.message' },
      none: 'nothing to land',
      examples: ['--ids c-1 --ids c-2'],
    },
    'request-land': { call: 'POST /agents/{id}/request-land', done: 'asked for {id} to be landed' },
    sync: {
      call: 'POST /agents/{id}/sync',
      done: 'brought {id} onto the main line',
      lists: {
        repositories: {
          rows: 'repos',
          columns: { repository: 'repo', onto: 'onto', commits: 'commits', 'changed on both sides': 'overlap' },
        },
      },
    },
    rename: { call: 'POST /agents/{id}/rename', done: '{id} is called {title}', examples: ['c-1 "Cart total"'] },
    discard: { call: 'POST /agents/{id}/discard', done: 'discarded the work of {id}' },
    archive: { call: 'POST /agents/archive', args: ['ids'], done: 'archived {moved.id}', examples: ['c-1'] },
    unarchive: {
      call: 'POST /agents/unarchive',
      args: ['ids'],
      ids: { ids: 'archived' },
      done: '{moved.id} is back on the board',
      examples: ['c-1'],
    },
    purge: {
      call: 'POST /agents/purge',
      args: ['ids'],
      ids: { ids: 'archived' },
      done: 'deleted {removed} for good',
      examples: ['c-1'],
    },
    seen: { call: 'POST /agents/{id}/seen', done: 'marked {id} as read' },
    'seen-all': { call: 'POST /agents/seen', args: ['ids'], done: 'marked {ids} as read' },
    'auto-land': {
      call: 'POST /agents/{id}/auto-land',
      args: ['id', 'autoLand'],
      done: 'the work of {id} lands by itself: {autoLand}',
      examples: ['c-1 true'],
    },
    'resume-after-outage': {
      call: 'POST /agents/{id}/resume-after-outage',
      args: ['id', 'resumeAfterOutage'],
      done: 'turns of {id} resume after an outage: {resumeAfterOutage}',
      examples: ['c-1 true'],
    },
    queue: {
      call: 'GET /agents/{id}/queue',
      rows: 'messages',
      columns: QUEUE,
      below: PAUSED,
      none: 'no messages wait',
    },
    'order-queue': {
      call: 'POST /agents/{id}/queue/order',
      args: ['id'],
      rows: 'messages',
      columns: QUEUE,
      above: [{ rows: '', if: 'run', text: 'started run {run}; {sandbox} attach {id} follows it' }],
      below: PAUSED,
      none: 'no messages wait',
    },
    unqueue: { call: 'DELETE /agents/{id}/queue/{messageId}', done: 'removed {messageId}: {removed.text}' },
    place: { call: 'POST /agents/{id}/place', args: ['id', 'text'], done: 'added a line to {id}' },
  },
  failures: {
    'POST /agents/{id}/land': {
      field: 'landed',
      is: [false],
      text: '{conflicts?files differ from the workspace:nothing was written}',
      refused: true,
    },
    'POST /agents/land': [
      { field: 'results.error', text: '{id}: {error.message}' },
      { field: 'results.result.landed', is: [false], text: '{of.id} has conflicts', refused: true },
    ],
    'POST /agents/{id}/sync': {
      field: 'repos.blocked',
      is: [true],
      text: '{repo}: the main line changed the same lines of {paths}, so nothing was changed',
      refused: true,
    },
  },
}
