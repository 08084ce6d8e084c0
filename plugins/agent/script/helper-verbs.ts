import type { HelperAction } from './command.js'
import { Malformed } from './malformed.js'
import type { Use } from './use.js'
import type { Argument } from './verbs.js'

/** Reads `helper DESCRIPTION` and `helper& DESCRIPTION`, whose lines are what the helper is told. */
export const readHelper = ({ text, lines }: Argument, verb: string): HelperAction => {
  if (text === '') throw new Malformed(`expected ${verb} DESCRIPTION, found nothing`)
  return { verb: 'helper', description: text, prompt: lines.join('\n') || text, background: verb === 'helper&' }
}

/** Reads `join`. */
export const readJoin = ({ text }: Argument): HelperAction => {
  if (text !== '') throw new Malformed(`expected join alone on its line, found "join ${text.slice(0, 60)}"`)
  return { verb: 'join' }
}

/** The call that starts a helper or waits for helpers. */
export const helperUse = (action: HelperAction, text: (raw: string) => string): Use => {
  if (action.verb === 'join') return { name: 'Join', category: 'other', target: '', input: {} }
  const { prompt, background } = action
  const description = text(action.description).slice(0, 2000).toWellFormed()
  return { name: 'Delegate', category: 'other', target: description, input: { description, prompt, background }, once: true }
}
