import { wordsOfServer } from '../../sdk/node/models/server-words.js'
import { type OutgoingAnswer, bytesOf } from '../../sdk/node/models/outgoing.js'
import type { WireProtocol } from './contract.js'

/** How a model answered: the moment of its first token, and whether the answer was whole. */
export interface ChatAnswer {
  /** When the first piece of text, thought or tool call came. */
  readonly firstAt?: number
  readonly streamed: boolean
  /** Why it does not count as an answer. */
  readonly wrong?: string
}

const MOST_ANSWER = 1024 * 1024

interface Seen {
  firstAt?: number
  ended: boolean
  wrong?: string
}

interface Piece {
  readonly [field: string]: unknown
}

/** Reads the answer of a model to its end; never throws for what the server does. */
export const readChatAnswer = async (
  protocol: WireProtocol,
  answer: OutgoingAnswer,
  secrets: readonly string[],
): Promise<ChatAnswer> => {
  const type = String(answer.headers['content-type'] ?? '')
  if (/text\/html/.test(type)) {
    answer.body.destroy()
    return { streamed: false, wrong: 'a web page was answered instead of a message: check the address' }
  }
  const streamed = /event-stream|ndjson|x-ndjson|jsonl/.test(type)
  if (!streamed) return wholeAnswer(protocol, answer, secrets)
  const seen: Seen = { ended: false }
  try {
    let size = 0
    let rest = ''
    const decoder = new TextDecoder()
    for await (const bytes of answer.body as AsyncIterable<Buffer>) {
      size += bytes.length
      if (size > MOST_ANSWER) return { streamed, wrong: 'the answer to a short question is longer than 1 MiB' }
      const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r?\n/)
      rest = lines.pop() ?? ''
      for (const line of lines) readLine(protocol, line, seen, secrets)
    }
    readLine(protocol, rest, seen, secrets)
  } catch {
    return { ...first(seen), streamed, wrong: 'the answer broke off in the middle' }
  }
  const wrong =
    seen.wrong
    ?? (seen.firstAt === undefined
      ? 'the answer has no text'
      : seen.ended
        ? undefined
        : 'the answer broke off in the middle')
  return { ...first(seen), streamed, ...(wrong !== undefined && { wrong }) }
}

const first = ({ firstAt }: Seen) => (firstAt === undefined ? {} : { firstAt })

const wholeAnswer = async (
  protocol: WireProtocol,
  answer: OutgoingAnswer,
  secrets: readonly string[],
): Promise<ChatAnswer> => {
  const seen: Seen = { ended: false }
  const { bytes } = await bytesOf(answer, MOST_ANSWER)
  readLine(protocol, bytes.toString('utf8').replace(/\r?\n/g, ' '), seen, secrets)
  const wrong = seen.wrong ?? (seen.firstAt === undefined ? 'the answer is no message of this protocol' : undefined)
  return { ...first(seen), streamed: false, ...(wrong !== undefined && { wrong }) }
}

const readLine = (protocol: WireProtocol, line: string, seen: Seen, secrets: readonly string[]): void => {
  const text = line.replace(/^data:\s*/, '').trim()
  if (text === '[DONE]') seen.ended = true
  if (!text.startsWith('{')) return
  let piece: Piece
  try {
    piece = JSON.parse(text) as Piece
  } catch {
    seen.wrong ??= 'a piece of the answer is no JSON'
    return
  }
  if (piece.error) seen.wrong ??= wordsOfServer(text, secrets) || 'the server reported an error'
  const { gave, ended } =
    protocol === 'openai' ? ofChoices(piece) : protocol === 'anthropic' ? ofBlocks(piece) : ofChat(piece)
  if (gave) seen.firstAt ??= Date.now()
  if (ended) seen.ended = true
}

const fields = (value: unknown): Piece => (typeof value === 'object' && value !== null ? (value as Piece) : {})

const speaks = (value: unknown): boolean => {
  const { content, reasoning, reasoning_content: thought, thinking, tool_calls: calls } = fields(value)
  return (
    [content, reasoning, thought, thinking].some(text => typeof text === 'string' && text !== '')
    || Array.isArray(calls)
  )
}

const ofChoices = ({ choices }: Piece) => {
  const choice = fields(Array.isArray(choices) ? choices[0] : undefined)
  const ended = typeof choice.finish_reason === 'string'
  // Out of tokens before the first word: a model that thinks first has answered too.
  return { gave: speaks(choice.delta) || speaks(choice.message) || choice.finish_reason === 'length', ended }
}

const ofBlocks = ({ type, content }: Piece) => ({
  gave: type === 'content_block_start' || (type === 'message' && Array.isArray(content) && content.length > 0),
  ended: type === 'message_stop' || type === 'message',
})

const ofChat = ({ message, done }: Piece) => ({ gave: speaks(message) || done === true, ended: done === true })
