import { oneLine } from '../terminal/text.js'
import { valueWords } from '../terminal/values.js'

/** The past of verbs whose last letter doubles, or that are irregular. */
const PAST: { readonly [verb: string]: string } = {
  set: 'set',
  stop: 'stopped',
  run: 'started',
  send: 'sent',
  begin: 'begun',
  unsubscribe: 'unsubscribed',
  forget: 'forgot',
  give: 'gave',
  drop: 'dropped',
  seen: 'marked as seen',
  leave: 'left',
}

/** What a call did, from its name and what it was given: `remove-design` of `x` is `removed design x`. */
export const didOf = (name: string, values: readonly unknown[]): string => {
  const [verb = '', ...rest] = name.split('-')
  const past = PAST[verb] ?? (verb.endsWith('e') ? `${verb}d` : verb.replace(/([^aeiou])y$/, '$1i') + 'ed')
  const named = values.filter(value => typeof value === 'string' || typeof value === 'number')
  return [past, ...rest, ...named.map(value => oneLine(valueWords('text', value, 0)))].join(' ')
}
