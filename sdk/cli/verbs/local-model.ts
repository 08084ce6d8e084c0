import type { EndpointRow, LocalInput } from '../../../plugins/endpoints/contract.js'
import { askedAs, askedOf, type FailingCall } from '../calls/asked-as.js'
import { SELF } from '../terminal/own-name.js'
import { oneLine, plain, quoted } from '../terminal/text.js'
import { misused, type GivenArguments, type Terminal } from '../verb.js'

const SAVE: FailingCall = ['endpoints', 'POST /endpoints']
const MOST_CONTEXT = 1_048_576

/** Adds a model that this machine runs. */
export const addLocal = (terminal: Terminal, given: GivenArguments, name: string): Promise<number> => {
  const [model = '', url, sha256, label] = ['local', 'url', 'sha256', 'label'].map(flag => given.text(flag))
  const context = given.text('context')
  if (!model) misused(`--local: expected a model of ${SELF} model fit, or custom with --url FILE`)
  if (context !== undefined && !(/^\d{3,7}$/.test(context) && Number(context) <= MOST_CONTEXT))
    misused(`--context: expected a number of tokens from 512 to ${MOST_CONTEXT}, found ${plain(context)}`)
  const input: LocalInput = {
    id: name,
    kind: 'local',
    model,
    ...(url !== undefined && { url }),
    ...(sha256 !== undefined && { sha256 }),
    ...(context !== undefined && { context: Number(context) }),
    ...(label !== undefined && { label }),
  }
  // For a local model the address is that of its file, not of the daemon.
  const daemon: GivenArguments = { ...given, text: flag => (flag === 'url' ? undefined : given.text(flag)) }
  return askedOf(
    terminal,
    daemon,
    SAVE,
    (client, options) => client.call('POST /endpoints', input, options),
    (row, failed) => [`saved ${plain(row.id)}: ${shownStatus(row)}`, ...(failed ? [] : wordsOf(row))],
  )
}

/** Starts or stops a model that this machine runs. */
export const switchLocal = (
  terminal: Terminal,
  given: GivenArguments,
  name: string,
  enabled: boolean,
): Promise<number> =>
  askedOf(
    terminal,
    given,
    SAVE,
    async (client, options) => {
      const { endpoints } = await client.call('GET /endpoints', undefined, options)
      const row = endpoints.find(({ id }) => id === name)
      const input = row && inputOf(row, enabled)
      return input
        ? client.call('POST /endpoints', input, options)
        : misused(`expected a model that this machine runs, found ${plain(name)}: ${SELF} model list names them`)
    },
    (row, failed) => [`${plain(row.id)}: ${shownStatus(row)}`, ...(enabled && !failed ? wordsOf(row) : [])],
  )

/** What a local model was saved with, to be served or not. */
const inputOf = ({ id, label, local }: EndpointRow, enabled: boolean): LocalInput | undefined =>
  local && {
    id,
    label,
    kind: 'local',
    model: local.model,
    ...(local.wantedContext !== undefined && { context: local.wantedContext }),
    enabled,
  }

const wordsOf = ({ id, status, detail }: EndpointRow): string[] => [
  ...(detail === undefined ? [] : [oneLine(detail)]),
  ...(status === 'ready'
    ? [`next: ${SELF} run "TEXT" --agent ${quoted(`endpoint/${id}`)}`]
    : [`next: ${SELF} model list shows when it is ready`]),
]

/** How an entry stands, with how far its download is. */
const shownStatus = ({ status, local }: EndpointRow): string => {
  const { receivedBytes = 0, totalBytes = 0 } = local ?? {}
  return status === 'downloading' && totalBytes > 0
    ? `${status} ${Math.floor((100 * receivedBytes) / totalBytes)} %`
    : status
}

/** Shows which models this machine can run. */
export const fitting = (terminal: Terminal, given: GivenArguments): Promise<number> =>
  askedAs(terminal, given, ['endpoints', 'local-model-fit'], (client, options) =>
    client.call('GET /endpoints/local-model/fit', undefined, options),
  )
