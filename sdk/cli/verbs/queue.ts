import type { Client } from '../../client.js'
import { Refusal } from '../../refusal.js'
import { wordsAs } from '../calls/asked-as.js'
import { printResult } from '../terminal/asked.js'
import { connected } from '../daemon/connection.js'
import { conversationOf } from '../follow/newest.js'
import { SELF } from '../terminal/own-name.js'
import { oneLine, plain, quoted } from '../terminal/text.js'
import { CONVERSATIONS, CONNECTION, EXIT, CommandFailure, misused, type Verb } from '../verb.js'

const TRIES = 5

/** Lists, removes and reorders the waiting messages of a conversation. */
export const queue: Verb = {
  name: 'queue',
  usage: '[CONVERSATION]',
  summary: 'list, remove or reorder the waiting messages; default: the newest conversation',
  examples: ['queue', 'queue c-1 --first m-2', 'queue c-1 --remove m-1', 'queue c-1 --start'],
  notes: ['run --conversation ID queues a message that the running turn cannot accept.'],
  ids: CONVERSATIONS,
  flags: {
    remove: { value: 'MESSAGE', help: 'remove a message, and print its text' },
    first: { value: 'MESSAGE', multiple: true, help: 'move a message to the front; repeat it for several' },
    start: { help: 'end a pause: start the first one when the conversation is idle' },
    ...CONNECTION,
  },
  most: 1,
  run: (terminal, given) => {
    const [messageId, first, start] = [given.text('remove'), given.all('first'), given.on('start')]
    if (messageId !== undefined && (first.length > 0 || start))
      misused('expected --remove alone, or --first and --start')
    return connected(terminal, given, async ({ client }) => {
      const options = { signal: terminal.signal }
      const id = await conversationOf(terminal, client, given)
      if (messageId !== undefined) {
        return printResult(
          terminal,
          given,
          await client.call('DELETE /agents/{id}/queue/{messageId}', { id, messageId }, options),
          ({ removed }) => `removed ${oneLine(removed.messageId)}: ${plain(removed.text)}`,
        )
      }
      if (first.length > 0 || start)
        return printResult(
          terminal,
          given,
          await ordered(client, id, first, start, options),
          await wordsAs(terminal, ['agents', 'order-queue'], { input: { id } }),
        )
      return printResult(
        terminal,
        given,
        await client.call('GET /agents/{id}/queue', { id }, options),
        await wordsAs(terminal, ['agents', 'queue'], { input: { id } }),
      )
    })
  },
}

/** Reorders the current queue and retries on a conflict, so that a message that arrives meanwhile is kept. */
const ordered = async (
  client: Client,
  id: string,
  first: readonly string[],
  start: boolean,
  options: { readonly signal: AbortSignal },
) => {
  for (let left = TRIES; ; left--) {
    const waiting = (await client.call('GET /agents/{id}/queue', { id }, options)).messages.map(
      ({ messageId }) => messageId,
    )
    const missing = first.find(message => !waiting.includes(message))
    if (missing !== undefined)
      throw new CommandFailure(
        EXIT.refused,
        `--first: no message ${plain(missing)} waits in ${plain(id)}; ${SELF} queue ${quoted(id)} lists them`,
      )
    const messageIds = [...new Set([...first, ...waiting])]
    try {
      return await client.call('POST /agents/{id}/queue/order', { id, messageIds, ...(start && { start }) }, options)
    } catch (error) {
      if (left === 0 || !(error instanceof Refusal && error.reason === 'conflict')) throw error
    }
  }
}
