import { type Client, createClient, Unreached } from '../../client.js'
import { askSocket, type SocketRequest } from './socket.js'
import { Refusal } from '../../refusal.js'
import { assertAnswers, daemonAt, findDaemon, type Running } from './daemon.js'
import { WITHOUT_WALL } from '../../node/wall/absence.js'
import { inputText } from '../terminal/input.js'
import { EXIT, CommandFailure, type GivenArguments, misused, type Terminal } from '../verb.js'
import { say } from '../terminal/write.js'
import { ignored } from '../../ignored.js'

/** A client of a daemon, with its details if it runs on this machine. */
export interface Connection {
  readonly client: Client
  readonly url: string
  readonly daemon?: Running
}

/**
 * Connects to the daemon that the command line selects, with the given token, else with an owner session that ends with
 * the work.
 */
export const connected = async <T>(
  terminal: Terminal,
  given: GivenArguments,
  work: (connection: Connection) => Promise<T>,
): Promise<T> => {
  const { url, daemon } = await whichDaemon(terminal, given)
  const { SANDBOX_RUN_TOKEN: run } = terminal.env
  if (run) return work({ client: createClient({ url, run }), url })
  const token = await tokenOf(terminal, given)
  const warn = given.on('json') ? () => {} : () => say(terminal, `warning: ${WITHOUT_WALL}\n`)
  if (daemon?.wall === 'none') warn()
  if (token) {
    const client = signed(createClient({ url, token }), terminal)
    if (!daemon && (await wallOf(client, terminal)) === 'none') warn()
    return work({ client, url, ...(daemon && { daemon }) })
  }
  if (!daemon) {
    await assertAnswers(url, terminal)
    throw new CommandFailure(
      EXIT.refused,
      `no credential for ${url}: it is not a daemon of this user on this machine, so put a control token into `
        + 'SANDBOX_TOKEN',
    )
  }
  return asOwner(daemon, terminal, work)
}

/** What the turns of a daemon elsewhere run behind; undefined: the token may not ask, or the daemon does not say. */
const wallOf = (client: Client, { signal }: Terminal): Promise<string | undefined> =>
  client.call('GET /info', undefined, { signal }).then(
    ({ wall }) => wall,
    () => undefined,
  )

/** The control token, from a file or the environment: other users of this machine can see arguments. */
const tokenOf = async (terminal: Terminal, given: GivenArguments): Promise<string | undefined> => {
  const file = given.text('token-file')
  if (file === undefined) return terminal.env.SANDBOX_TOKEN
  return (
    (await inputText(terminal, file, '--token-file')).trim()
    || misused(`--token-file: expected a control token, found nothing in ${file}`)
  )
}

/** Runs work with an owner session of a daemon on this machine. */
export const asOwner = async <T>(
  daemon: Running,
  terminal: Pick<Terminal, 'signal' | 'sign'>,
  work: (connection: Connection) => Promise<T>,
): Promise<T> => {
  const open = async () =>
    (await askLogin<{ token: string }>(daemon, { do: 'session', device: 'sandbox cli' }, terminal.signal)).token
  // The session ends with the daemon, so a stream that survives a restart needs a new one.
  const client = signed(createClient({ url: daemon.url, session: await open(), renew: open }), terminal)
  try {
    return await work({ client, url: daemon.url, daemon })
  } finally {
    await client
      .call('POST /system/sessions/revoke', { current: true }, { signal: AbortSignal.timeout(1000) })
      .catch(ignored('the session ends by itself'))
  }
}

/** A client that shows the progress sign during long calls. */
const signed = (client: Client, { sign }: Pick<Terminal, 'sign'>): Client =>
  sign ? { call: (...asked) => sign.during(() => client.call(...asked)) } : client

/** Sends a request to a daemon's login socket; throws its refusal, or `Unreached`. */
export const askLogin = async <T extends object>(
  { socket, url }: Running,
  request: SocketRequest,
  signal: AbortSignal,
): Promise<T> => {
  if (!socket)
    throw new CommandFailure(
      EXIT.refused,
      `the daemon at ${url} has its local sign-in switched off: put a control token into SANDBOX_TOKEN`,
    )
  try {
    return await askSocket<T>(socket, request, signal)
  } catch (error) {
    throw error instanceof Refusal && error.reason === 'unavailable' ? new Unreached(error.message, error) : error
  }
}

/** Selects the daemon: by address, by data folder, or the one running on this machine. */
export const whichDaemon = async (
  terminal: Terminal,
  given: GivenArguments,
): Promise<{ url: string; daemon?: Running }> => {
  const { SANDBOX_DAEMON: own, SANDBOX_RUN_TOKEN: run } = terminal.env
  // A run that a daemon started talks to this daemon, as who started it.
  if (own && run) return { url: own }
  const data = given.text('data')
  const url = given.text('url') || (data ? undefined : terminal.env.SANDBOX_URL)
  if (!url) {
    const daemon = await findDaemon(terminal, data || terminal.env.SANDBOX_DATA)
    return { url: daemon.url, daemon }
  }
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    misused(`expected an address such as http://127.0.0.1:8787, found ${url}`)
  const daemon = await daemonAt(terminal, url)
  return { url, ...(daemon && { daemon }) }
}
