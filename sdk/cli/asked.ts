import type { Client } from '../client.js'
import { connected } from './connection.js'
import { jsonLine } from './text.js'
import { EXIT, type GivenArguments, type Terminal } from './verb.js'
import { write } from './write.js'

/** What an answer says, for a terminal of some width. */
type Words<T> = (answer: T, width: number | undefined) => string | readonly string[]

/** Prints an answer, as JSON where that is wanted, else in words: a line, or several. */
export const told = async <T>(
  terminal: Terminal,
  given: GivenArguments,
  answer: T,
  words: Words<T>,
): Promise<number> => {
  await write(terminal, given.on('json') ? jsonLine(answer) : `${[words(answer, terminal.width)].flat().join('\n')}\n`)
  return EXIT.ok
}

/** Asks the daemon that is meant one thing, and prints what it answers. */
export const asked = <T>(
  terminal: Terminal,
  given: GivenArguments,
  ask: (client: Client, options: { readonly signal: AbortSignal }) => Promise<T>,
  words: Words<T>,
): Promise<number> =>
  connected(terminal, given, async ({ client }) =>
    told(terminal, given, await ask(client, { signal: terminal.signal }), words),
  )
