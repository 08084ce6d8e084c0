import { isUtf8 } from 'node:buffer'
import type { Bytes } from '../../contract.js'
import { jsonLine } from '../terminal/text.js'
import { EXIT, CommandFailure, type GivenArguments, type Terminal } from '../verb.js'
import { write } from '../terminal/write.js'

const isStream = (answer: unknown): answer is AsyncIterable<unknown> =>
  typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer
const isBytes = (answer: unknown): answer is Bytes =>
  typeof answer === 'object' && answer !== null && 'data' in answer && answer.data instanceof Uint8Array

/** How an answer is shown without --json: as lines; and each event of a stream, by default as JSON. */
export interface AnswerText {
  readonly lines: (answer: unknown) => readonly string[]
  readonly event?: (event: unknown) => string | undefined
}

/** Prints the answer of a call: events of a stream as they come, bytes unchanged, other values as text or JSON. */
export const printAnswer = async (
  terminal: Terminal,
  given: GivenArguments,
  answer: unknown,
  { lines, event }: AnswerText,
): Promise<number> => {
  const eventText = (one: unknown) => {
    const text = given.on('json') ? undefined : event?.(one)
    return text === undefined ? jsonLine(one) : `${text}\n`
  }
  if (isStream(answer)) for await (const one of answer) await write(terminal, eventText(one))
  else if (isBytes(answer)) await writeBytes(terminal, Buffer.from(answer.data))
  else if (given.on('json')) await write(terminal, jsonLine(answer))
  else await write(terminal, `${lines(answer).join('\n')}\n`)
  return EXIT.ok
}

/** Writes bytes unchanged to a file or a pipe; a terminal only gets UTF-8 text. */
const writeBytes = async (terminal: Terminal, data: Buffer): Promise<void> => {
  if (!('isTTY' in terminal.out && terminal.out.isTTY))
    return new Promise<void>(done => terminal.out.write(data, () => done()))
  if (!isUtf8(data))
    throw new CommandFailure(
      EXIT.failed,
      `the answer is ${data.length} bytes that are not text: send them to a file with > FILE`,
    )
  await write(terminal, data.toString())
}
