import type { CliColumns, CliInput } from '../../cli-table.js'
import type { Client } from '../../client.js'
import { connected } from '../daemon/connection.js'
import { asked, printResult } from '../terminal/asked.js'
import { SELF } from '../terminal/own-name.js'
import type { GivenArguments, Terminal } from '../verb.js'
import { answerLines } from './answer.js'
import { assertDone, failedOf, failuresOf } from './failures.js'
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

/** A call that a written verb makes, with the group whose table says which of its answers are failures. */
export type FailingCall = readonly [group: string, call: string]

/** Makes one call and prints its answer; an answer that says that the call failed ends the program as a failure. */
export const askedOf = async <T>(
  terminal: Terminal,
  given: GivenArguments,
  call: FailingCall,
  ask: (client: Client, options: { readonly signal: AbortSignal }) => Promise<T>,
  words: (answer: T, failed: boolean) => readonly string[],
): Promise<number> => {
  const failures = await failuresOf(terminal, call)
  return connected(terminal, given, async ({ client }) => {
    const answer = await ask(client, { signal: terminal.signal })
    const failed = failedOf(answer, failures, SELF)
    const code = await printResult(terminal, given, answer, () => words(answer, failed !== undefined))
    assertDone(failed)
    return code
  })
}

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
