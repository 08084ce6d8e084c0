import { refuse } from '../../sdk/index.js'
import { ownAddresses, type Listener } from '../../sdk/node/network/addresses.js'
import { parseAllowed } from '../../sdk/node/network/allow.js'

/** What is wrong with an entry of `networkAllow`. */
export interface WrongEntry {
  readonly at: number
  readonly expected: string
}

/** The entries that are none, or name what no conversation reaches. */
export const wrongAllowed = (entries: readonly string[], listeners: readonly Listener[] = []): WrongEntry[] =>
  entries.flatMap((text, at) => {
    const parsed = parseAllowed(text)
    if ('expected' in parsed) return [{ at, expected: parsed.expected }]
    const here = parsed.kind === 'local' || (parsed.kind === 'addresses' && ownAddresses().some(parsed.holds))
    const own = here && listeners.some(({ port }) => port === parsed.port)
    return own ? [{ at, expected: 'a port other than that of this sandbox itself, which no conversation reaches' }] : []
  })

/** Refuses entries that cannot be kept; `path` is where they stand in the input. */
export const checkAllowed = (
  entries: readonly string[] | undefined,
  listeners: readonly Listener[],
  path: string,
): void => {
  const wrong = wrongAllowed(entries ?? [], listeners)
  const [first] = wrong
  if (!first) return
  refuse('invalid', `${path}[${first.at}]: expected ${first.expected}, found ${JSON.stringify(entries![first.at])}`, {
    errors: wrong.map(({ at, expected }) => ({ path: `${path}[${at}]`, expected })),
  })
}
