import type { Client } from '../../../client.js'
import { SELF } from '../../terminal/own-name.js'
import { jsonLine } from '../../terminal/text.js'
import { say } from '../../terminal/write.js'
import type { GivenArguments, Terminal } from '../../verb.js'

const NOTE =
  'made a store of secrets: values are encrypted, and unlocked by a key file of this machine; '
  + `${SELF} secrets set-store changes that`

/** Says on standard error that the first value made the store of secrets. */
export const sayStoreMade = (terminal: Terminal, given: GivenArguments): void =>
  say(terminal, given.on('json') ? jsonLine({ note: NOTE, store: 'made' }) : `${NOTE}\n`)

/** Does work that may store the first secret, and says so if that made the store. */
export const withStoreNote = async <T>(
  terminal: Terminal,
  given: GivenArguments,
  client: Client,
  work: () => Promise<T>,
): Promise<T> => {
  // Who may not read this stores no secrets either.
  const isMade = () =>
    client.call('GET /secrets/store', undefined, { signal: terminal.signal }).then(
      ({ configured }) => configured,
      () => undefined,
    )
  const before = await isMade()
  const done = await work()
  if (before === false && (await isMade())) sayStoreMade(terminal, given)
  return done
}
