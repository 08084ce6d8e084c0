import type { TranscriptMessage } from '../../../plugins/agent/contract.js'
import type { Client } from '../../client.js'
import { printResult } from '../terminal/asked.js'
import { connected } from '../daemon/connection.js'
import { confirmed } from '../terminal/confirm.js'
import { conversationBefore, conversationOf, withText } from '../follow/newest.js'
import { SELF } from '../terminal/own-name.js'
import { begin, BEGIN, words } from './run.js'
import { counted, oneLine, plain, quoted, short } from '../terminal/text.js'
import { checkTurn, newConversation, TURN, turnOf } from '../follow/turn.js'
import { CONVERSATIONS, CONNECTION, EXIT, CommandFailure, type GivenArguments, misused, type Verb } from '../verb.js'
import { say } from '../terminal/write.js'

const PAGE = 50

/** Undoes a message and everything after it, with the files of the private copy or of the whole workspace. */
export const rewindVerb: Verb = {
  name: 'rewind',
  usage: '[CONVERSATION] [--before N]',
  summary: 'undo a message and everything after it, with the files they changed; default: the newest conversation',
  examples: ['rewind', 'rewind c-1 --before 4 --yes'],
  notes: [
    'transcript shows the numbers of messages. Queued messages stay, paused. Without a private copy the whole '
      + 'workspace',
    'goes back to what it was before that message; history lists the state before it went back.',
    'It asks for confirmation. Without a terminal it requires --yes.',
  ],
  ids: CONVERSATIONS,
  flags: {
    before: { value: 'N', help: 'the number of the message; default: the one that began the last turn' },
    yes: { short: 'y', help: 'do not ask for confirmation' },
    ...CONNECTION,
  },
  most: 1,
  run: (terminal, given) => {
    const asked = placeOf(given)
    return connected(terminal, given, async ({ client }) => {
      const options = { signal: terminal.signal }
      const conversationId = await conversationOf(terminal, client, given)
      const { index, total, text, newest } = await placeIn(client, conversationId, asked, terminal.signal)
      const said = text === undefined ? '' : ` "${short(plain(text), 60)}"`
      const what = `message ${index}${said} of ${oneLine(conversationId)}`
      const drops =
        `going back to before ${what} drops ${counted(Math.max(0, total - index), 'message')} and `
        + `the work that came with ${total - index === 1 ? 'it' : 'them'}`
      if (!given.on('yes')) {
        const { branch } = await client.call('GET /agents/{id}', { id: conversationId }, options)
        const all = branch === undefined ? ', and takes back what anybody has changed in the workspace since' : ''
        if (!(await confirmed(terminal, given, `${drops}${all}: go back?`, '--yes'))) return EXIT.refused
      }
      return printResult(
        terminal,
        given,
        await client.call(
          'POST /agent/rewind',
          { conversationId, index, ...(newest !== undefined && { expect: newest }) },
          options,
        ),
        ({ dropped }) => [
          `back to before message ${index}: ${counted(dropped, 'message')} dropped`,
          `next: ${SELF} run --conversation ${quoted(conversationId)} "…"`,
        ],
      )
    })
  },
}

/** Starts a conversation with the messages of another one. */
export const fork: Verb = {
  name: 'fork',
  usage: '[CONVERSATION] "PROMPT"',
  summary: 'start a conversation from the messages of another one, and follow its turn; default: the newest one',
  examples: ['fork "try it the other way"', 'fork c-1 "try it the other way" --before 4 --as other-way'],
  notes: [
    'PROMPT - reads it from standard input. With --before N it begins with the messages before that one, and with '
      + 'the files as that',
    'message found them; transcript shows the numbers. Without it, with all messages and the files as they are in '
      + 'the workspace now.',
  ],
  ids: CONVERSATIONS,
  flags: {
    before: { value: 'N', help: 'begin with the messages before this one' },
    files: {
      value: 'WHEN',
      choices: ['then', 'now'],
      help: 'the files as the message found them (then), or as they are now',
    },
    as: { value: 'ID', help: 'the id of the new conversation; default: a new one' },
    ...TURN,
    ...BEGIN,
    ...CONNECTION,
  },
  least: 1,
  most: Infinity,
  run: async (terminal, given) => {
    const said = withText(fork, given)
    const before = placeOf(given)
    const files = filesOf(given)
    if (files === 'then' && before === undefined)
      misused('--files then: expected --before N as well, the message whose files to take')
    const conversationId = newConversation(given, 'as')
    checkTurn(given)
    const prompt = await words(terminal, said.text)
    if (!prompt.trim()) misused('expected a prompt, found nothing')
    return connected(terminal, given, async connection => {
      const { client } = connection
      const from = await conversationBefore(terminal, client, fork, said)
      const { branch } = await client.call('GET /agents/{id}', { id: from }, { signal: terminal.signal })
      const keep =
        before
        ?? (await client.call('GET /agents/{id}/transcript', { id: from, limit: 1 }, { signal: terminal.signal })).total
      const when = files ?? (before !== undefined && branch !== undefined ? 'then' : 'now')
      const input = await turnOf(terminal, connection, given, prompt, conversationId)
      if (!given.on('json'))
        say(
          terminal,
          `begins with ${counted(keep, 'message')} of ${oneLine(from)} and the `
            + `files ${when === 'then' ? 'of then' : 'as they are now'}\n`,
        )
      return begin(terminal, connection, given, { ...input, forkOf: { conversationId: from, keep, files: when } })
    })
  },
}

const filesOf = (given: GivenArguments): 'then' | 'now' | undefined => {
  const files = given.text('files')
  return files === undefined || files === 'then' || files === 'now'
    ? files
    : misused(`--files: expected then or now, found ${plain(files)}`)
}

const placeOf = (given: GivenArguments): number | undefined => {
  const before = given.text('before')
  if (before !== undefined && !/^\d{1,9}$/.test(before))
    misused(`--before: expected the number of a message, as transcript shows it, found ${plain(before)}`)
  return before === undefined ? undefined : Number(before)
}

/** The position and text of a message; by default the last one that began a turn, whose files were saved. */
const placeIn = async (
  client: Client,
  id: string,
  asked: number | undefined,
  signal: AbortSignal,
): Promise<{ index: number; total: number; text?: string; newest?: string }> => {
  const page = (before: number | undefined, limit: number) =>
    client.call('GET /agents/{id}/transcript', { id, limit, ...(before !== undefined && { before }) }, { signal })
  const { messages: end } = await page(undefined, 1)
  const newest = end.at(-1)?.run
  const seen = newest === undefined ? {} : { newest }
  if (asked !== undefined) {
    const {
      messages: [message],
      total,
    } = await page(asked + 1, 1)
    return { index: asked, total, ...seen, ...(message?.index === asked && { text: message.text }) }
  }
  let last: TranscriptMessage | undefined
  let total = 0
  for (let before: number | undefined; before !== 0;) {
    const { messages, ...found } = await page(before, PAGE)
    const sent = messages.filter(({ role }) => role === 'user')
    const saved = sent.findLast(({ checkpointId }) => checkpointId !== undefined)
    total = found.total
    last ??= sent.at(-1)
    if (saved) return { index: saved.index, total, text: saved.text, ...seen }
    before = messages[0]?.index ?? 0
  }
  if (last) return { index: last.index, total, text: last.text, ...seen }
  throw new CommandFailure(EXIT.refused, `${plain(id)} has no message to go back to`)
}
