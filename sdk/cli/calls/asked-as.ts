import type { CliColumns, CliInput } from '../../cli-table.js'
import type { Client } from '../../client.js'
import { asked } from '../terminal/asked.js'
import { SELF } from '../terminal/own-name.js'
import type { GivenArguments, Terminal } from '../verb.js'
import { answerLines } from './answer.js'
import { tableOf } from './tables.js'

/** What a written verb adds to the verb of the table. */
export interface TableWith {
  /** The input of the call, for the places of sentences. */
  readonly input?: CliInput
  /** Columns before those of the table. */
  readonly columns?: CliColumns
  /** What is said of an empty list of these. */
  readonly none?: string
}

/** Makes one call and prints its answer as a verb of a group's table does, for a written verb that shows the same. */
export const askedAs = async <T>(
  terminal: Terminal,
  given: GivenArguments,
  shownBy: readonly [group: string, verb: string],
  ask: (client: Client, options: { readonly signal: AbortSignal }) => Promise<T>,
  more: TableWith = {},
): Promise<number> => asked(terminal, given, ask, await wordsAs(terminal, shownBy, more))

/** The text of an answer as a verb of a group's table shows it. */
export const wordsAs = async (
  terminal: Pick<Terminal, 'root'>,
  [group, name]: readonly [group: string, verb: string],
  { input = {}, columns, none }: TableWith = {},
): Promise<(answer: unknown, width: number | undefined) => string[]> => {
  const known = (await tableOf(terminal, group))?.verbs[name]
  const verb = known && {
    ...known,
    ...(columns && { columns: { ...columns, ...known.columns } }),
    ...(none !== undefined && { none }),
  }
  return (answer, width) =>
    answerLines(answer, { ...(verb && { verb }), input, width, now: Date.now(), self: SELF, did: 'done' })
}
