import type { CliInput, CliTable } from '../../sdk/cli-table.js'
import type { LoopsCalls } from './contract.js'

const STATES = {
  done: 'done',
  running: 'running',
  stopped: 'stopped',
  stalled: 'gave up: nothing changed any more',
  exhausted: 'gave up: out of rounds',
  overspent: 'gave up: out of money',
  error: 'failed',
}

const ENDS = { done: 'done', continue: 'goes on', error: 'failed' }

/** Until the agent says so ten times at most, unless a check decides; one conversation for each loop. */
const usual = ({ goal, checks }: CliInput): CliInput => ({
  conversationId: `loop-${crypto.randomUUID().slice(0, 8)}`,
  prompt: goal,
  isolated: true,
  context: 'continue',
  output: { kind: checks ? 'none' : 'claim' },
  checks: [],
  maxIterations: 10,
  stallLimit: 3,
})

/** The verbs of the group. */
export const cli: CliTable<LoopsCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /loops',
      args: [],
      rows: 'loops',
      columns: {
        conversation: 'conversationId',
        state: { field: 'state', words: STATES },
        rounds: { field: 'iterations.length', none: '0' },
        cost: 'costUsd',
        started: 'startedAt',
        goal: { field: 'goal', most: 50 },
      },
      none: 'no loops; {sandbox} loops start "GOAL" starts one',
      examples: ['--state running'],
    },
    start: {
      call: 'POST /loops',
      args: ['goal', 'conversationId'],
      flags: {
        prompt: { help: 'the words of each round; default: the goal' },
        isolated: { help: 'work in a private copy (the default); --no-isolated works in the shared tree' },
        context: { help: 'continue one session (the default), or begin a fresh one each round' },
        output: { help: 'what each round writes: {"kind":"claim"} is whether the goal is met' },
        checks: {
          name: 'check',
          value: 'COMMAND',
          help: 'a command that must succeed before the loop is done; repeat it for several',
          of: command => ({ kind: 'command', command }),
        },
        maxIterations: { name: 'rounds', help: 'the most rounds; default: 10' },
        maxSpendUsd: { name: 'spend', value: 'USD', help: 'the most that all rounds may cost' },
        stallLimit: { name: 'stalled', help: 'rounds in a row without a change that end it; default: 3' },
        actsAs: { name: 'persona', value: 'PERSONA' },
      },
      fill: usual,
      done: 'started a loop on {conversationId}: {sandbox} loops get {conversationId} shows its rounds',
      examples: ['"every test passes" --check "npm test" --rounds 20', '"the README names every flag" c-1 --spend 2'],
    },
    get: {
      call: 'GET /loops/{conversationId}',
      columns: {
        goal: 'goal',
        state: { field: 'state', words: STATES },
        why: 'detail',
        'waits for': 'waitingFor',
        rounds: { field: 'iterations.length', none: 'none yet' },
        'at most': 'maxIterations',
        cost: 'costUsd',
        'at most it costs': 'maxSpendUsd',
        started: 'startedAt',
        by: 'startedBy',
        ended: 'endedAt',
        checks: { field: ['checks.command', 'checks.kind'], none: 'the agent says when it is done' },
      },
      lists: {
        rounds: {
          rows: 'iterations',
          columns: {
            round: 'n',
            ended: 'at',
            outcome: { field: 'outcome', words: ENDS },
            changed: 'changed',
            cost: 'costUsd',
            why: { field: ['document.reason', 'detail'] },
          },
        },
      },
    },
    stop: {
      call: 'POST /loops/{conversationId}/stop',
      flags: { now: { help: 'stop the round in hand (the default); --no-now lets it end' } },
      done: 'stopped the loop on {conversationId}',
    },
    resume: {
      call: 'POST /loops/{conversationId}/resume',
      flags: {
        maxIterations: { name: 'rounds', help: 'the most rounds, with those that were made' },
        maxSpendUsd: { name: 'spend', value: 'USD', help: 'the most that all rounds may cost' },
        stallLimit: { name: 'stalled', help: 'rounds in a row without a change that end it' },
      },
      done: 'the loop on {conversationId} goes on',
      examples: ['c-1 --rounds 40 --note "leave the slow tests"'],
    },
    designs: {
      call: 'GET /loops/designs',
      rows: 'designs',
      columns: {
        id: 'id',
        name: 'name',
        rounds: 'maxIterations',
        checks: 'checks.length',
        'what it does': 'description',
      },
      none: 'no saved designs',
      more: { 'not read': 'problems.id', because: 'problems.message' },
    },
    'save-design': {
      call: 'POST /loops/designs',
      args: [],
      fill: () => ({ create: true }),
      done: 'saved the design {id}',
      examples: ['design=@design.json', '--no-create design=@design.json'],
    },
    'remove-design': {
      call: 'DELETE /loops/designs/{id}',
      ids: { id: 'designs' },
      done: 'removed the design {id}',
      examples: ['green'],
    },
  },
}
