import { Refusal } from '../../refusal.js'
import { askedAs } from '../calls/asked-as.js'
import { asked, printResult } from '../terminal/asked.js'
import { ATTACH, attachmentsOf } from '../follow/attachments.js'
import { connected } from '../daemon/connection.js'
import { conversationBefore, conversationOf, withText } from '../follow/newest.js'
import { SELF } from '../terminal/own-name.js'
import { words } from './run.js'
import { oneLine, plain, quoted } from '../terminal/text.js'
import { inFlags } from '../follow/turn.js'
import { CONVERSATIONS, CONNECTION, EXIT, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { say } from '../terminal/write.js'

/** Sends a message into a running turn. */
export const steerVerb: Verb = {
  name: 'steer',
  usage: '[CONVERSATION] "TEXT"',
  summary: 'send a message into the running turn without stopping it; default: the newest conversation',
  examples: ['steer "use tabs"', 'steer c-1 "look at this" --attach notes.txt'],
  notes: [
    'TEXT - reads it from standard input. It never starts a turn and never waits for one: that is what run '
      + '--conversation does.',
  ],
  ids: CONVERSATIONS,
  flags: { ...ATTACH, ...CONNECTION },
  least: 1,
  most: Infinity,
  run: async (terminal, given) => {
    const said = withText(steerVerb, given)
    const text = await words(terminal, said.text)
    if (!text.trim()) misused('expected a text, found nothing')
    return connected(terminal, given, async connection => {
      const attachments = await attachmentsOf(terminal, connection, given.all('attach'))
      const conversationId = await conversationBefore(terminal, connection.client, steerVerb, said, { working: true })
      const input = { conversationId, text, ...(attachments.length && { attachments }) }
      const answer = await connection.client
        .call('POST /agent/steer', input, { signal: terminal.signal })
        .catch(error => {
          throw inWords(error, conversationId)
        })
      return printResult(terminal, given, answer, () => `said to ${oneLine(conversationId)}`)
    })
  },
}

/** Replaces the call that the daemon's refusal suggests with the equivalent command. */
const inWords = (error: unknown, conversation: string): unknown => {
  const found = inFlags(error)
  if (!(found instanceof Refusal)) return found
  return new Refusal(
    found.reason,
    found.message.replaceAll('POST /agent', `${SELF} run --conversation ${quoted(conversation)} "…"`),
    found.detail,
  )
}

/** Gives a conversation a title. */
export const rename: Verb = {
  name: 'rename',
  usage: '[CONVERSATION] "TITLE"',
  summary: 'set the title of a conversation, which is then not generated; default: the newest conversation',
  examples: ['rename "The parser"', 'rename c-1 "The parser"'],
  ids: CONVERSATIONS,
  flags: CONNECTION,
  least: 1,
  most: Infinity,
  run: (terminal, given) => {
    const said = withText(rename, given)
    const title = said.text
    return connected(terminal, given, async ({ client }) => {
      const id = await conversationBefore(terminal, client, rename, said)
      return printResult(
        terminal,
        given,
        await client.call('POST /agents/{id}/rename', { id, title }, { signal: terminal.signal }),
        card => `${oneLine(id)} is called ${oneLine(card.title ?? title)}`,
      )
    })
  },
}

/** Archives conversations, lists the archived ones, and restores them. */
export const archive: Verb = {
  name: 'archive',
  usage: '[CONVERSATION…] | --finished | --list | --restore CONVERSATION…',
  summary: 'archive conversations; their work and messages are kept; default: the newest one',
  examples: ['archive c-1', 'archive --finished', 'archive --list', 'archive --restore c-1'],
  notes: [
    'Archiving commits uncommitted work on the branch and removes the private copy; the next turn after --restore '
      + 'creates it again.',
  ],
  ids: CONVERSATIONS,
  flags: {
    finished: { help: 'archive every finished conversation' },
    list: { help: 'list the archived conversations' },
    restore: { help: 'restore conversations' },
    ...CONNECTION,
  },
  most: 500,
  run: (terminal, given) => {
    const chosen = ['finished', 'list', 'restore'].filter(flag => given.on(flag))
    if (chosen.length > 1)
      misused(`expected one of --finished, --list and --restore, found --${chosen.join(' and --')}`)
    if (given.on('list') || given.on('finished')) {
      if (given.args.length > 0)
        misused(`expected no conversation with --${chosen[0]}, found ${given.args.map(plain).join(' ')}`)
      return given.on('list') ? listed(terminal, given) : archived(terminal, given, undefined)
    }
    if (!given.on('restore')) return archived(terminal, given, [...given.args])
    if (given.args.length === 0)
      misused(`expected a conversation to restore, found none; ${SELF} archive --list shows them`)
    return asked(
      terminal,
      given,
      (client, options) => client.call('POST /agents/unarchive', { ids: [...given.args] }, options),
      ({ moved }) => moved.map(({ id }) => `restored ${oneLine(id)}`),
    )
  },
}

const listed = (terminal: Terminal, given: GivenArguments): Promise<number> =>
  askedAs(terminal, given, ['agents', 'archived'], (client, options) =>
    client.call('GET /agents/archived', {}, options),
  )

/** Archives the named conversations; without names, every finished one. */
const archived = (terminal: Terminal, given: GivenArguments, named: string[] | undefined): Promise<number> =>
  connected(terminal, given, async ({ client }) => {
    const ids = named?.length === 0 ? [await conversationOf(terminal, client, given)] : named
    const done = await client.call('POST /agents/archive', ids ? { ids } : {}, { signal: terminal.signal })
    const { moved, failed = [] } = done
    if (!given.on('json'))
      for (const { id, message } of failed)
        say(terminal, `sandbox: ${oneLine(id)} was not archived: ${plain(message)}\n`)
    const back = moved.length === 1 ? `; ${SELF} archive --restore ${quoted(moved[0]!.id)} restores it` : ''
    await printResult(terminal, given, done, () =>
      moved.length ? moved.map(({ id }) => `archived ${oneLine(id)}${back}`) : ['nothing was archived'],
    )
    return failed.length ? EXIT.failed : EXIT.ok
  })
