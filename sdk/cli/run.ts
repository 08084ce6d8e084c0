import { randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Card, PermissionMode, Started, TurnInput } from '../../plugins/agent/contract.js'
import type { Client } from '../client.js'
import { Unreached } from '../client.js'
import { isCard, replyFrom } from './cards.js'
import { told } from './asked.js'
import { connected, type Connection } from './connection.js'
import { conversationOf } from './newest.js'
import { answering, type Followed, followRun, type OnCard } from './follow.js'
import { SELF } from './own-name.js'
import { answerWords } from './render.js'
import { jsonLine, plain, quoted, stylesOf } from './text.js'
import { CONNECTION, EXIT, Failure, type Given, misused, type Terminal, type Verb } from './verb.js'
import { durationOf } from './when.js'
import { say, write } from './write.js'

const START_TRIES = 3

/** How long somebody without a terminal watches. */
const PATIENCE = {
  timeout: { value: 'TIME', help: 'watch no longer than this, such as 90s or 10m; the turn goes on' },
  'no-input': { help: 'leave with code 4 at the first card that no --answer is for, as without a terminal' },
} as const

const CONVERSATION = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/
const MODES: readonly string[] = ['default', 'acceptEdits', 'plan', 'bypassPermissions'] satisfies PermissionMode[]

const ANSWER = { value: 'WORDS', multiple: true, help: 'answer the next card so (once per question); more than one in their order' } as const

/** Says something to an agent and shows what it does. */
export const run: Verb = {
  name: 'run',
  usage: '"PROMPT"',
  summary: 'start a turn and follow it to its end',
  notes: [
    'Where the workspace is a git repository the turn works in a private copy, which you read with diff and bring in with land.',
    'PROMPT - reads it from standard input. Ctrl-C stops watching, not the turn.',
    'Without a terminal it leaves with code 4 when the turn waits for an answer, and prints the card and the command that answers it.',
  ],
  flags: {
    conversation: { value: 'ID', help: 'say it in this conversation; left out: a new one' },
    isolated: { help: 'work in a private copy' },
    shared: { help: 'work in the workspace itself' },
    agent: { value: 'PROVIDER', help: 'the provider; left out: the conversation\'s, else the default one' },
    model: { value: 'MODEL', help: 'the model' },
    mode: { value: 'MODE', help: 'permission mode: default, acceptEdits, plan or bypassPermissions' },
    title: { value: 'TITLE', help: 'the title of a new conversation' },
    answer: ANSWER,
    detach: { help: 'print the conversation and leave' },
    ...PATIENCE,
    ...CONNECTION,
  },
  least: 1,
  most: Infinity,
  run: async (terminal, given) => {
    const prompt = given.args.length === 1 && given.args[0] === '-' ? await readAll(terminal) : given.args.join(' ')
    if (!prompt.trim()) misused('expected a prompt, found nothing')
    if (given.on('isolated') && given.on('shared')) misused('expected --isolated or --shared, found both')
    check(given)
    return connected(terminal, given, async connection => {
      const started = await startTurn(connection, turnOf(given, prompt, await isolated(given, connection)))
      const json = given.on('json')
      if (json) await write(terminal, jsonLine(started))
      else await write(terminal, `${stylesOf(terminal.colour).bold(`conversation ${started.conversationId}`)}${started.delivery === 'started' ? '' : `, ${started.delivery}`}\n`)
      if (given.on('detach')) return EXIT.ok
      return watched(terminal, connection.client, given, started, { leaves: !terminal.interactive && given.text('timeout') === undefined })
    })
  },
}

/** Shows a conversation's newest run, from its first frame. */
export const attach: Verb = {
  name: 'attach',
  usage: '[CONVERSATION]',
  summary: 'follow a conversation; left out: the newest one',
  flags: {
    run: { value: 'RUN', help: 'the run that --after counts for' },
    after: { value: 'N', help: 'leave out the frames up to this one' },
    answer: ANSWER,
    ...PATIENCE,
    ...CONNECTION,
  },
  most: 1,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const conversationId = await conversationOf(terminal, client, given)
      const after = given.text('after')
      if (after !== undefined && !/^\d+$/.test(after)) misused(`--after: expected a whole number from 0, found ${after}`)
      const from = { ...(given.text('run') && { run: given.text('run')! }), ...(after && { after: Number(after) }) }
      return watched(terminal, client, given, { conversationId, ...from }, { onward: true })
    }),
}

/** Answers a card that waits. */
export const answer: Verb = {
  name: 'answer',
  usage: 'CARD [ANSWER…]',
  summary: 'answer what an agent asks',
  notes: [
    'CARD is the id that run printed, or the conversation when only one card waits there.',
    'A question takes a number, a label or your own words for each question; a plan yes, or no and what to change; a permission once, always or deny; an offer yes or no.',
  ],
  flags: {
    conversation: { value: 'ID', help: 'where the card is, for a token that may not read the fleet' },
    cancel: { help: 'answer nothing and stop the turn' },
    ...CONNECTION,
  },
  least: 1,
  most: Infinity,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const [id = '', ...words] = given.args
      const card = await waitingCard(client, id, given.text('conversation'), terminal.signal)
      if (given.on('cancel') && card.kind !== 'question') misused('only a question can be cancelled; answer this one, or stop the conversation')
      if (given.on('cancel') === words.length > 0) misused('expected an answer or --cancel')
      const reply = given.on('cancel') ? ({ kind: 'question', requestId: card.requestId, cancelled: true } as const) : replyFrom(card, words)
      return told(terminal, given, await client.call('POST /agent/reply', reply, { signal: terminal.signal }), () => `answered: ${plain(answerWords(reply))}`)
    }),
}

/** Stops the turn of a conversation. */
export const stop: Verb = {
  name: 'stop',
  usage: '[CONVERSATION]',
  summary: 'stop the turn; files already written stay; left out: the newest one',
  flags: CONNECTION,
  most: 1,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const conversationId = await conversationOf(terminal, client, given)
      return told(terminal, given, await client.call('POST /agent/stop', { conversationId }, { signal: terminal.signal }), () => `stopped ${plain(conversationId)}`)
    }),
}

/** Starts a turn; asked again with the same message id where no answer came, it starts only once. */
export const startTurn = async ({ client }: Connection, input: TurnInput): Promise<Started> => {
  const message: TurnInput = { messageId: `m-${randomBytes(8).toString('hex')}`, ...input }
  for (let tries = 1; ; tries++) {
    try {
      return await client.call('POST /agent', message)
    } catch (error) {
      if (tries === START_TRIES || !(error instanceof Unreached)) throw error
    }
  }
}

/** A conversation id nobody uses yet. */
export const mintConversation = (): string => `c-${randomBytes(5).toString('hex')}`

const turnOf = (given: Given, prompt: string, isolated: boolean): TurnInput => {
  const optional = { agent: given.text('agent'), model: given.text('model'), title: given.text('title'), permissionMode: given.text('mode') as PermissionMode | undefined }
  return {
    prompt,
    conversationId: given.text('conversation') ?? mintConversation(),
    ...(isolated && { isolated }),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  }
}

const isolated = async (given: Given, { daemon }: Connection): Promise<boolean> => {
  if (given.on('isolated') || given.on('shared')) return given.on('isolated')
  return daemon === undefined || stat(join(daemon.workspace, '.git')).then(() => true, () => false)
}

const readAll = async (terminal: Terminal): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of terminal.in) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString('utf8')
}

const waitingCard = async (client: Client, id: string, conversation: string | undefined, signal: AbortSignal): Promise<Card> => {
  const { conversationId, requestId } = conversation ? { conversationId: conversation, requestId: id } : await located(client, id, signal)
  let known = 0
  for await (const event of await client.call('POST /agent/attach', { conversationId }, { signal })) {
    if (event.kind === 'attached') known = event.seq
    if (event.kind !== 'frame') continue
    if (isCard(event.event) && event.event.requestId === requestId) return event.event
    if (event.seq >= known) break
  }
  throw new Failure(EXIT.failed, `no card ${plain(requestId)} in conversation ${plain(conversationId)}`)
}

const located = async (client: Client, id: string, signal: AbortSignal): Promise<{ conversationId: string; requestId: string }> => {
  const { agents } = await client.call('GET /agents', undefined, { signal })
  const open = agents.flatMap(agent => (agent.cards ?? []).map(({ requestId }) => ({ conversationId: agent.id, requestId })))
  const found = open.filter(card => card.requestId === id || card.conversationId === id)
  if (found.length > 1) throw new Failure(EXIT.usage, `${found.length} cards wait there; name one of ${found.map(card => plain(card.requestId)).join(', ')}`)
  return found[0] ?? Promise.reject(new Failure(EXIT.failed, `no card waits under ${plain(id)}; ${SELF} agents shows what waits`))
}

/** Follows a run, and with `onward` those that start after it, and says what to type next; `leaves`: at a card that nobody answers here. */
const watched = async (
  terminal: Terminal, client: Client, given: Given, what: { conversationId: string; run?: string; after?: number },
  { onward = false, leaves = false } = {},
): Promise<number> => {
  const json = given.on('json')
  const { conversationId } = what
  const left = new AbortController()
  const noInput = given.on('no-input')
  const seen = { ...terminal, interactive: terminal.interactive && !noInput, signal: AbortSignal.any([terminal.signal, left.signal]) }
  const answer = answering(seen, json, given.all('answer'))
  const onCard: OnCard = async (card, signal) => {
    const reply = await answer(card, signal)
    if (!reply && !signal.aborted && (leaves || noInput)) left.abort()
    return reply
  }
  const patience = given.text('timeout')
  const timer = patience === undefined ? undefined : setTimeout(() => left.abort(), durationOf(patience, '--timeout'))
  try {
    let followed = await followRun(seen, client, { json, onCard, ...pick(what) })
    while (onward && followed.next) followed = await followRun(seen, client, { json, onCard, conversationId, run: followed.next })
    if (!json) await write(terminal, nextSteps(conversationId, followed, terminal.colour))
    return followed.end === 'completed' ? EXIT.ok : EXIT.turn
  } catch (error) {
    if (!seen.signal.aborted) throw error
    say(terminal, `${terminal.signal.aborted ? '\n' : ''}the turn goes on: ${SELF} attach ${conversationId} follows it, ${SELF} stop ${conversationId} stops it\n`)
    if (terminal.signal.aborted) throw error
    return EXIT.turn
  } finally {
    clearTimeout(timer)
  }
}

/** What is wrong is told by the words the person typed, before anything is asked of a daemon. */
const check = (given: Given): void => {
  const mode = given.text('mode')
  if (mode !== undefined && !MODES.includes(mode)) misused(`--mode: expected ${MODES.slice(0, -1).join(', ')} or ${MODES.at(-1)}, found ${plain(mode)}`)
  const id = given.text('conversation')
  if (id !== undefined && !CONVERSATION.test(id)) {
    misused(`--conversation: expected at most 64 letters, digits, _ and -, the first a letter or digit, found ${plain(id)}`)
  }
  const patience = given.text('timeout')
  if (patience !== undefined) durationOf(patience, '--timeout')
}

const pick = ({ conversationId, run, after }: { conversationId: string; run?: string; after?: number }) =>
  ({ conversationId, ...(run !== undefined && { run }), ...(after !== undefined && { after }) })

const nextSteps = (conversation: string, { end }: Followed, colour: boolean): string => {
  const { dim } = stylesOf(colour)
  const id = quoted(conversation)
  const lines = end === 'completed' ? [`${SELF} diff ${id}`, `${SELF} land ${id}`] : [`${SELF} run --conversation ${id} "…"`, `${SELF} diff ${id}`]
  return `${dim(`next: ${lines.join('  or  ')}`)}\n`
}
