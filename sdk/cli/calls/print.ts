import { isUtf8 } from 'node:buffer'
import type { Bytes } from '../../contract.js'
import { jsonLine } from '../terminal/text.js'
import { EXIT, CommandFailure, type GivenArguments, type Terminal } from '../verb.js'
import { write } from '../terminal/write.js'
import { answerLines } from './answer.js'

const isStream = (answer: unknown): answer is AsyncIterable<unknown> =>
  typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer
const isBytes = (answer: unknown): answer is Bytes =>
  typeof answer === 'object' && answer !== null && 'data' in answer && answer.data instanceof Uint8Array

/**
 * Prints the answer of a call: a stream as one event per line, bytes unchanged, other values as text or with --json as
 * JSON.
 */
export const printAnswer = async (
  terminal: Terminal,
  given: GivenArguments,
  answer: unknown,
  lines = answerLines,
): Promise<number> => {
  if (isStream(answer)) for await (const event of answer) await write(terminal, jsonLine(event))
  else if (isBytes(answer)) await writeBytes(terminal, Buffer.from(answer.data))
  else if (given.on('json')) await write(terminal, jsonLine(answer))
  else await write(terminal, `${lines(answer, terminal.width).join('\n')}\n`)
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
