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
): Promise<number> => {
  const verb = (await tableOf(terminal, group))?.verbs[name]
  return asked(terminal, given, ask, (answer, width) =>
    answerLines(answer, { ...(verb && { verb }), width, now: Date.now(), self: SELF, did: 'done' }),
  )
}
