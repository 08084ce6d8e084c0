import type { CliTable } from '../../sdk/cli-table.js'
import type { PipelinesCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<PipelinesCalls> = {
  bare: 'runs',
  hidden: ['POST /ci/webhook/{host}'],
  verbs: {
    runs: {
      call: 'GET /ci/runs',
      args: [],
      rows: 'runs',
      columns: {
        run: 'runId',
        repository: 'repo',
        state: 'status',
        branch: 'branch',
        started: 'createdAt',
        workflow: 'workflow',
        title: 'title',
      },
      none: 'no runs; {sandbox} capabilities catalog lists the forges to connect',
    },
    jobs: {
      call: 'POST /ci/runs/jobs',
      args: ['repo', 'runId'],
      rows: 'jobs',
      columns: { job: 'id', name: 'name', state: 'status', took: 'durationSeconds', log: 'log' },
      none: 'no jobs',
    },
    log: {
      call: 'POST /ci/runs/log',
      args: ['runId', 'job'],
      done: '{text}',
      examples: ['17209114882 48120339912 --repo shop'],
    },
    rerun: { call: 'POST /ci/runs/rerun', args: ['repo', 'runId'], done: 'the run {runId} of {repo} runs again' },
    cancel: { call: 'POST /ci/runs/cancel', args: ['repo', 'runId'], done: 'stopped the run {runId} of {repo}' },
    fix: {
      call: 'POST /ci/fix',
      args: ['repo', 'runId'],
      done: 'an agent works on it: {sandbox} attach {conversationId} follows it',
    },
    seen: { call: 'POST /ci/seen', done: 'marked all results as seen' },
    run: { call: 'POST /prepush/run', done: 'started the check before a push' },
    state: {
      call: 'GET /prepush/state',
      columns: {
        state: 'status',
        command: 'command',
        started: 'startedAt',
        ended: 'finishedAt',
        'ended with': 'exitCode',
        output: 'output',
      },
    },
    stop: { call: 'POST /prepush/cancel', done: 'stopped the check before a push' },
    'webhook-reveal': {
      call: 'GET /ci/webhook/{host}',
      columns: {
        address: 'url',
        secret: 'secret',
        made: 'createdAt',
        'last used': { field: 'lastUsedAt', none: 'never' },
      },
    },
    'webhook-rotate': {
      call: 'POST /ci/webhook/{host}/rotate',
      done: 'made a new secret for {host}; the old one stopped working',
      columns: { address: 'url', secret: 'secret' },
    },
  },
}
