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
    stop: { call: 'POST /agent/stop', done: 'stopped the turn of {conversationId}' },
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
