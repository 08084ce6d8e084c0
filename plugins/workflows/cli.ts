import type { CliColumns, CliTable } from '../../sdk/cli-table.js'
import type { WorkflowsCalls } from './contract.js'

const RUN: CliColumns = {
  run: 'runId',
  workflow: 'workflow.name',
  state: 'state',
  started: 'startedAt',
  ended: 'endedAt',
  cost: 'costUsd',
  why: 'detail',
}

/** The verbs of the group. */
export const cli: CliTable<WorkflowsCalls> = {
  bare: 'list',
  hidden: ['POST /workflows/{id}/gate'],
  verbs: {
    list: {
      call: 'GET /workflows',
      rows: 'workflows',
      columns: {
        id: 'id',
        name: 'name',
        steps: 'steps.length',
        'last run': 'runs.0.state',
        'what it does': 'description',
      },
      none: 'no workflows; {sandbox} workflows save makes one',
    },
    save: {
      call: 'POST /workflows',
      args: [],
      fill: () => ({ create: true }),
      done: 'saved {id}',
      examples: ['workflow=@release.json', '--no-create workflow=@release.json'],
    },
    remove: { call: 'DELETE /workflows/{id}', done: 'removed {id}; its runs stay' },
    run: {
      call: 'POST /workflows/{id}/run',
      args: ['id', 'request'],
      done: 'started {id}: {sandbox} workflows run-get {runId} shows its steps',
    },
    runs: {
      call: 'GET /workflows/runs',
      args: [],
      rows: 'runs',
      columns: RUN,
      none: 'no runs',
    },
    'run-get': {
      call: 'GET /workflows/runs/{runId}',
      ids: { runId: 'runs' },
      columns: RUN,
      lists: {
        steps: {
          rows: 'steps',
          columns: { step: 'stepId', state: 'state', conversation: 'conversationId', cost: 'costUsd', why: 'detail' },
        },
      },
    },
    'stop-run': { call: 'POST /workflows/runs/{runId}/stop', ids: { runId: 'runs' }, done: 'stopped the run {runId}' },
    'archive-run': {
      call: 'POST /workflows/runs/{runId}/archive',
      ids: { runId: 'runs' },
      done: 'archived the run {runId}',
    },
    'unarchive-run': {
      call: 'POST /workflows/runs/{runId}/unarchive',
      ids: { runId: 'runs' },
      done: 'the run {runId} is back',
    },
    'gate-reveal': {
      call: 'GET /workflows/{id}/gate',
      columns: {
        address: 'url',
        token: 'token',
        made: 'createdAt',
        'last used': { field: 'lastUsedAt', none: 'never' },
        'used today': 'usedToday',
        'at most a day': 'dailyMax',
      },
    },
    'gate-rotate': {
      call: 'POST /workflows/{id}/gate/rotate',
      done: 'made a new token for {id}; the old one stopped working',
      columns: { address: 'url', token: 'token' },
    },
  },
  failures: {
    'POST /workflows/{id}/gate': { field: 'outcome', is: ['blocked', 'fail'] },
  },
}
