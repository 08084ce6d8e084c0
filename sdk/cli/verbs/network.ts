import type { Settings } from '../../../plugins/settings/contract.js'
import type { Client } from '../../client.js'
import { Refusal } from '../../refusal.js'
import { asked } from '../terminal/asked.js'
import { SELF } from '../terminal/own-name.js'
import { plain } from '../terminal/text.js'
import { CONNECTION, misused, type GivenArguments, type Terminal, type Verb } from '../verb.js'

const EXPECTED =
  'expected network, network allow HOST[:PORT]…, network remove HOST[:PORT]…, network only on|off, network own or '
  + 'network shared'
const TRIES = 5

type Reached = Pick<Settings, 'network' | 'networkAllow' | 'networkOnly'>
type Change = (now: Reached) => Partial<Reached>

/** Shows and changes which addresses conversations can reach. */
export const network: Verb = {
  name: 'network',
  usage: '[allow HOST[:PORT]… | remove HOST[:PORT]… | only on|off | own | shared]',
  summary: 'show and change which addresses conversations reach',
  examples: ['network', 'network allow localhost:5432', 'network only on'],
  notes: [
    'Each conversation has its own network: two may serve the same port. They reach public addresses, and what '
      + 'you allow:',
    'a name, *.name, an address, a network such as 10.1.0.0/16, each with or without :PORT, or localhost:PORT, '
      + 'which is then reachable',
    'inside at the same port. allow and remove apply to new connections, own and shared (the network of the '
      + 'machine) from the next',
    'turn on. The daemon itself and cloud metadata addresses are never reachable.',
  ],
  flags: CONNECTION,
  least: 0,
  most: 101,
  run: (terminal, given) => {
    const [what, ...rest] = given.args
    const [switched] = rest
    if (what === undefined)
      return asked(
        terminal,
        given,
        (client, options) => client.call('GET /settings', undefined, options).then(reachedOf),
        linesOf,
      )
    if (what === 'allow' && rest.length > 0)
      return changed(terminal, given, ({ networkAllow }) => ({
        networkAllow: [...new Set([...networkAllow, ...rest])],
      }))
    if (what === 'remove' && rest.length > 0)
      return changed(terminal, given, ({ networkAllow }) => ({ networkAllow: without(networkAllow, rest) }))
    if (what === 'only' && rest.length === 1 && (switched === 'on' || switched === 'off'))
      return changed(terminal, given, () => ({ networkOnly: switched === 'on' }))
    if ((what === 'own' || what === 'shared') && rest.length === 0)
      return changed(terminal, given, () => ({ network: what }))
    return misused(`${EXPECTED}, found network ${given.args.map(plain).join(' ')}`)
  },
}

const reachedOf = ({ network: kind, networkAllow, networkOnly }: Settings): Reached => ({
  network: kind,
  networkAllow,
  networkOnly,
})

const without = (allowed: readonly string[], gone: readonly string[]): string[] => {
  const missing = gone.find(entry => !allowed.includes(entry))
  if (missing !== undefined)
    misused(`network remove: ${plain(missing)} is not in the list of allowed addresses; ${SELF} network shows it`)
  return allowed.filter(entry => !gone.includes(entry))
}

/** Applies the change to the current list and retries on a conflict, so that no concurrent change is lost. */
const changed = (terminal: Terminal, given: GivenArguments, change: Change): Promise<number> =>
  asked(
    terminal,
    given,
    async (client, options) => {
      for (let left = TRIES; ; left--) {
        const { settings, revision } = await client.call('POST /settings/patch', {}, options)
        const written = await write(client, change(reachedOf(settings)), revision, options).catch((error: unknown) => {
          if (left > 0 && error instanceof Refusal && error.reason === 'conflict') return undefined
          throw error
        })
        if (written) return written
      }
    },
    linesOf,
  )

const write = async (
  client: Client,
  set: Partial<Reached>,
  revision: string,
  options: { readonly signal: AbortSignal },
): Promise<Reached> => reachedOf((await client.call('POST /settings/patch', { set, revision }, options)).settings)

/** Describes the network settings. */
export const linesOf = ({ network: kind, networkAllow, networkOnly }: Reached): string[] => [
  kind === 'own'
    ? 'each conversation has its own network (own)'
    : 'conversations have the network of the machine, from their next turn, and reach all it reaches (shared)',
  ...(kind === 'own'
    ? [networkOnly ? 'it reaches only what is allowed' : 'it reaches public addresses, and what is allowed']
    : []),
  ...(networkAllow.length
    ? ['allowed:', ...networkAllow.map(entry => `  ${plain(entry)}`)]
    : [`no further address is allowed; ${SELF} network allow HOST[:PORT] allows one`]),
]
