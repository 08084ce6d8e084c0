import type { CliTable } from '../../sdk/cli-table.js'
import type { Agent } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<Agent> = {
  bare: 'cards',
  verbs: {
    cards: {
      call: 'GET /agent/cards',
      args: [],
      rows: 'cards',
      columns: {
        card: 'card.requestId',
        conversation: 'conversationId',
        kind: 'card.kind',
        raised: 'raisedAt',
        asks: ['card.questions.question', 'card.title', 'card.message', 'card.text'],
      },
      none: 'no cards: no turn waits for an answer',
    },
    commands: {
      call: 'GET /agent/commands',
      args: [],
      rows: 'commands',
      columns: { command: 'name', 'what it does': 'description' },
      none: 'no shortcut commands',
    },
    refusals: { call: 'GET /agent/refusals' },
    run: {
      call: 'POST /agent',
      args: ['prompt'],
      done: 'started a turn in {conversationId}: {sandbox} attach {conversationId} follows it',
      examples: ['"update the changelog" --isolated'],
    },
    reply: {
      call: 'POST /agent/reply',
      args: ['kind', 'requestId'],
      done: 'answered {requestId}',
      examples: ['plan r-1.1 --approve'],
    },
    steer: {
      call: 'POST /agent/steer',
      args: ['conversationId', 'text'],
      done: 'sent to the running turn of {conversationId}',
    },
    stop: {
      call: 'POST /agent/stop',
      columns: {
        stopped: {
          field: 'stopped',
          words: { turn: 'the turn', resume: 'a planned resume', nothing: 'nothing: no turn ran' },
        },
        'ended in the background': 'ended',
        'still in the background': 'running',
      },
    },
    processes: {
      call: 'GET /agent/processes',
      args: ['conversationId'],
      rows: 'processes',
      columns: {
        conversation: 'conversationId',
        command: 'id',
        state: { field: ['ended', 'running'], text: { ended: '{ended}', running: 'runs' } },
        started: { field: 'startedAt', as: 'past' },
        line: { field: 'command', as: 'prose', most: 80 },
      },
      none: 'no commands in the background',
      examples: ['c-1'],
    },
    process: {
      call: 'GET /agent/processes/{conversationId}/{id}',
      columns: {
        command: 'command',
        state: { field: ['ended', 'running'], text: { ended: '{ended}', running: 'runs' } },
        output: 'text',
      },
      examples: ['c-1 sh-1'],
    },
    'end-process': {
      call: 'DELETE /agent/processes/{conversationId}/{id}',
      done: 'ended {id} of {conversationId}',
      examples: ['c-1 sh-1'],
    },
    rewind: {
      call: 'POST /agent/rewind',
      args: ['conversationId', 'index'],
      done: 'went back to before message {index}: {dropped} messages dropped',
    },
    'switch-account': {
      call: 'POST /agent/switch-account',
      args: ['conversationId', 'account'],
      done: '{conversationId} goes on elsewhere: from the {applied} turn',
      examples: ['c-1 --model claude-sonnet-4-5'],
    },
  },
}
