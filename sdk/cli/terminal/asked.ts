import type { Client } from '../../client.js'
import { connected } from '../daemon/connection.js'
import { jsonLine } from './text.js'
import { EXIT, type GivenArguments, type Terminal } from '../verb.js'
import { write } from './write.js'

/** Formats an answer as text for a terminal of this width. */
type Words<T> = (answer: T, width: number | undefined) => string | readonly string[]

/** Prints an answer as JSON with --json, otherwise as one or more lines of text. */
export const printResult = async <T>(
  terminal: Terminal,
  given: GivenArguments,
  answer: T,
  words: Words<T>,
): Promise<number> => {
  await write(terminal, given.on('json') ? jsonLine(answer) : `${[words(answer, terminal.width)].flat().join('\n')}\n`)
  return EXIT.ok
}

/** Makes one call to the daemon and prints its answer. */
export const asked = <T>(
  terminal: Terminal,
  given: GivenArguments,
  ask: (client: Client, options: { readonly signal: AbortSignal }) => Promise<T>,
  words: Words<T>,
): Promise<number> =>
  connected(terminal, given, async ({ client }) =>
    printResult(terminal, given, await ask(client, { signal: terminal.signal }), words),
  )
