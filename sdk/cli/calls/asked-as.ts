import type { CliInput } from '../../cli-table.js'
import type { Client } from '../../client.js'
import { asked } from '../terminal/asked.js'
import { SELF } from '../terminal/own-name.js'
import type { GivenArguments, Terminal } from '../verb.js'
import { answerLines } from './answer.js'
import { tableOf } from './tables.js'

/** Makes one call and prints its answer as a verb of a group's table does, for a written verb that shows the same. */
export const askedAs = async <T>(
  terminal: Terminal,
  given: GivenArguments,
  [group, name]: readonly [group: string, verb: string],
  ask: (client: Client, options: { readonly signal: AbortSignal }) => Promise<T>,
  input: CliInput = {},
): Promise<number> => {
  const words = await wordsAs(terminal, [group, name], input)
  return asked(terminal, given, ask, words)
}

/** The text of an answer as a verb of a group's table shows it. */
export const wordsAs = async (
  terminal: Pick<Terminal, 'root'>,
  [group, name]: readonly [group: string, verb: string],
  input: CliInput = {},
): Promise<(answer: unknown, width: number | undefined) => string[]> => {
  const verb = (await tableOf(terminal, group))?.verbs[name]
  return (answer, width) =>
    answerLines(answer, { ...(verb && { verb }), input, width, now: Date.now(), self: SELF, did: 'done' })
}
