import { isUtf8 } from 'node:buffer'
import type { Bytes } from '../../contract.js'
import type { CliFailure } from '../../cli-table.js'
import { SELF } from '../terminal/own-name.js'
import { jsonLine } from '../terminal/text.js'
import { EXIT, CommandFailure, type GivenArguments, type Terminal } from '../verb.js'
import { write } from '../terminal/write.js'
import { assertDone, type FailedAnswer, failedOf } from './failures.js'

const isStream = (answer: unknown): answer is AsyncIterable<unknown> =>
  typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer
const isBytes = (answer: unknown): answer is Bytes =>
  typeof answer === 'object' && answer !== null && 'data' in answer && answer.data instanceof Uint8Array

/** How an answer is shown without --json: as lines; and each event of a stream, by default as JSON. */
export interface AnswerText {
  readonly lines: (answer: unknown) => readonly string[]
  readonly event?: (event: unknown) => string | undefined
  /** The fields that say that the call failed. */
  readonly failures: readonly CliFailure[]
  /** Whether the first line says what was done, and so what was not. */
  readonly saysDone?: boolean
}

/**
 * Prints the answer of a call: events of a stream as they come, bytes unchanged, other values as text or JSON. It fails
 * if the answer says that the call did.
 */
export const printAnswer = async (
  terminal: Terminal,
  given: GivenArguments,
  answer: unknown,
  { lines, event, failures, saysDone = false }: AnswerText,
): Promise<number> => {
  const json = given.on('json')
  const eventText = (one: unknown) => {
    const text = json ? undefined : event?.(one)
    return text === undefined ? jsonLine(one) : `${text}\n`
  }
  if (isBytes(answer)) {
    await writeBytes(terminal, Buffer.from(answer.data))
    return EXIT.ok
  }
  if (isStream(answer)) {
    let failed: FailedAnswer | undefined
    for await (const one of answer) {
      await write(terminal, eventText(one))
      failed = failedOf(one, failures, SELF) ?? failed
    }
    assertDone(failed)
    return EXIT.ok
  }
  const failed = failedOf(answer, failures, SELF)
  const text = json ? [JSON.stringify(answer)] : lines(answer)
  const [done, rest] = failed && saysDone && !json ? [text[0]!, text.slice(1)] : [undefined, text]
  if (rest.length > 0) await write(terminal, json ? jsonLine(answer) : `${rest.join('\n')}\n`)
  assertDone(failed, done)
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
