import type { Card, Stopped, TurnInput } from '../../../plugins/agent/contract.js'
import type { Client } from '../../client.js'
import { backgroundLine } from '../follow/background.js'
import { printResult } from '../terminal/asked.js'
import { isAnswerable, replyFrom } from '../follow/cards.js'
import { connected, type Connection } from '../daemon/connection.js'
import { inputText } from '../terminal/input.js'
import { conversationOf } from '../follow/newest.js'
import { SELF } from '../terminal/own-name.js'
import { answerWords } from '../follow/card-lines.js'
import { counted, jsonLine, plain, stylesOf } from '../terminal/text.js'
import { checkTurn, newConversation, startTurn, TURN, turnOf } from '../follow/turn.js'
import {
  CONVERSATIONS,
  CONNECTION,
  EXIT,
  CommandFailure,
  type Flag,
  type GivenArguments,
  misused,
  type Terminal,
  type Verb,
} from '../verb.js'
import { WATCH, watched } from '../follow/watch.js'
import { write } from '../terminal/write.js'

/** The options of a verb that starts a turn: whether and how it is followed. */
export const BEGIN: { readonly [name: string]: Flag } = {
  ...WATCH,
  detach: { help: 'print the conversation and exit' },
}

/** Starts a turn and shows what the agent does. */
export const runVerb: Verb = {
  name: 'run',
  usage: '"PROMPT"',
  summary: 'start a turn and follow it to its end',
  examples: [
    'run "fix the failing test"',
    'run "now the docs" --conversation c-1',
    'run "what is on this picture?" --attach docs/plan.png',
    'run - --detach < task.md',
  ],
  notes: [
    'If the workspace is a git repository, the turn works in a private copy; review it with diff and bring its work '
      + 'into the workspace with land.',
    'PROMPT - reads it from standard input. Ctrl-C stops watching, not the turn.',
    'Without a terminal it exits with code 4 when the turn waits for an answer, and prints the card and the '
      + 'command that answers it.',
  ],
  ids: CONVERSATIONS,
  flags: {
    conversation: { value: 'ID', help: 'the conversation to write in; default: a new one' },
    ...TURN,
    ...BEGIN,
    ...CONNECTION,
  },
  most: Infinity,
  run: async (terminal, given) => {
    const prompt = given.args.length === 1 ? await words(terminal, given.args[0]!) : given.args.join(' ')
    if (!prompt.trim() && given.all('attach').length === 0) misused('expected a prompt or --attach FILE, found nothing')
    const conversationId = newConversation(given, 'conversation')
    checkTurn(given)
    return connected(terminal, given, async connection =>
      begin(terminal, connection, given, await turnOf(terminal, connection, given, prompt, conversationId)),
    )
  },
}

/** Starts a turn and follows it to its end, unless --detach was given. */
export const begin = async (
  terminal: Terminal,
  connection: Connection,
  given: GivenArguments,
  input: TurnInput,
): Promise<number> => {
  const started = await startTurn(connection, input)
  const json = given.on('json')
  if (json) await write(terminal, jsonLine(started))
  else {
    const name = stylesOf(terminal.colour).bold(`conversation ${started.conversationId}`)
    await write(terminal, `${name}${started.delivery === 'started' ? '' : `, ${started.delivery}`}\n`)
  }
  if (given.on('detach')) return EXIT.ok
  return watched(terminal, connection.client, given, started, {
    leaves: !terminal.interactive && given.text('timeout') === undefined,
  })
}

/** The words of a message; `-` reads them from standard input. */
export const words = (terminal: Pick<Terminal, 'cwd' | 'in'>, word: string): Promise<string> =>
  word === '-' ? inputText(terminal, '-', 'standard input') : Promise.resolve(word)

/** Shows a conversation's newest run, from its first frame. */
export const attachVerb: Verb = {
  name: 'attach',
  usage: '[CONVERSATION]',
  summary: 'follow a conversation; default: the newest one',
  examples: ['attach', 'attach c-1 --timeout 10m'],
  ids: CONVERSATIONS,
  flags: {
    run: { value: 'RUN', help: 'the run that --after refers to' },
    after: { value: 'N', help: 'skip the frames up to this one' },
    ...WATCH,
    ...CONNECTION,
  },
  most: 1,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const conversationId = await conversationOf(terminal, client, given, { working: true })
      const after = given.text('after')
      if (after !== undefined && !/^\d+$/.test(after))
        misused(`--after: expected a whole number from 0, found ${after}`)
      const from = { ...(given.text('run') && { run: given.text('run')! }), ...(after && { after: Number(after) }) }
      return watched(terminal, client, given, { conversationId, ...from }, { onward: true })
    }),
}

/** Answers a waiting card. */
export const answer: Verb = {
  name: 'answer',
  usage: 'CARD [ANSWER…]',
  summary: 'answer a card of an agent',
  examples: ['answer c-1 yes', 'answer q-1 2 "my own words"', 'answer c-1 --cancel'],
  notes: [
    'CARD is the id that run printed, or the conversation when only one card waits there.',
    'A question takes a number, a label or your own words for each question; a plan yes, or no and what to '
      + 'change; a permission once, always or deny; an offer yes or no.',
  ],
  flags: {
    conversation: { value: 'ID', help: 'the conversation of the card, for a token that may not read the fleet' },
    cancel: { help: 'cancel the card and stop the turn' },
    ...CONNECTION,
  },
  least: 1,
  most: Infinity,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const [id = '', ...said] = given.args
      const card = await waitingCard(client, id, given.text('conversation'), terminal.signal)
      if (given.on('cancel') && card.kind !== 'question')
        misused('only a question can be cancelled; answer this one, or stop the conversation')
      if (given.on('cancel') === said.length > 0) misused('expected an answer or --cancel')
      const reply = given.on('cancel')
        ? ({ kind: 'question', requestId: card.requestId, cancelled: true } as const)
        : replyFrom(card, said)
      return printResult(
        terminal,
        given,
        await client.call('POST /agent/reply', reply, { signal: terminal.signal }),
        () => `answered: ${plain(answerWords(reply))}`,
      )
    }),
}

/** Stops the turn of a conversation. */
export const stop: Verb = {
  name: 'stop',
  usage: '[CONVERSATION]',
  summary: 'stop the turn; files already written stay; default: the newest one',
  examples: ['stop', 'stop c-1', 'stop c-1 --background'],
  notes: ['Commands that the turn started in the background end with it; those of earlier turns go on.'],
  ids: CONVERSATIONS,
  flags: { background: { help: 'also end what earlier turns left running in the background' }, ...CONNECTION },
  most: 1,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const conversationId = await conversationOf(terminal, client, given, { working: true })
      const asked = { conversationId, ...(given.on('background') && { background: true }) }
      return printResult(
        terminal,
        given,
        await client.call('POST /agent/stop', asked, { signal: terminal.signal }),
        found => stoppedLines(conversationId, found).join('\n'),
      )
    }),
}

const STOPPED = {
  turn: (id: string) => `stopped ${id}`,
  resume: (id: string) => `${id} is not resumed after the outage`,
  nothing: (id: string) => `no turn of ${id} ran`,
} as const

/** The lines that say what a stop found. */
const stoppedLines = (conversation: string, { stopped, ended, running }: Stopped): string[] => {
  return [
    STOPPED[stopped](plain(conversation)),
    ...(ended > 0 ? [`ended ${counted(ended, 'command')} in the background`] : []),
    ...(running > 0 ? [backgroundLine(conversation, running)] : []),
  ]
}

const waitingCard = async (
  client: Client,
  id: string,
  conversation: string | undefined,
  signal: AbortSignal,
): Promise<Card> => {
  const { conversationId, requestId } = conversation
    ? { conversationId: conversation, requestId: id }
    : await located(client, id, signal)
  let known = 0
  for await (const event of await client.call('POST /agent/attach', { conversationId }, { signal })) {
    if (event.kind === 'attached') known = event.seq
    if (event.kind !== 'frame') continue
    if (isAnswerable(event.event) && event.event.requestId === requestId) return event.event
    if (event.seq >= known) break
  }
  throw new CommandFailure(EXIT.refused, `no card ${plain(requestId)} in conversation ${plain(conversationId)}`)
}

const located = async (
  client: Client,
  id: string,
  signal: AbortSignal,
): Promise<{ conversationId: string; requestId: string }> => {
  const { agents } = await client.call('GET /agents', undefined, { signal })
  const open = agents.flatMap(agent =>
    (agent.cards ?? []).map(({ requestId }) => ({ conversationId: agent.id, requestId })),
  )
  const found = open.filter(card => card.requestId === id || card.conversationId === id)
  if (found.length > 1)
    throw new CommandFailure(
      EXIT.usage,
      `${found.length} cards wait there; name one of ${found.map(card => plain(card.requestId)).join(', ')}`,
    )
  return (
    found[0]
    ?? Promise.reject(
      new CommandFailure(
        EXIT.refused,
        `no card or conversation ${plain(id)} waits for an answer; ${SELF} agents shows the waiting cards`,
      ),
    )
  )
}
