import { type Client, createClient, Unreached } from '../client.js'
import { askSocket, type SocketRequest } from './socket.js'
import { Refusal } from '../refusal.js'
import { daemonAt, findDaemon, type Running } from './daemon.js'
import { inputText } from './input.js'
import { EXIT, CommandFailure, type GivenArguments, misused, type Terminal } from './verb.js'

/** A way to a daemon, with what is known of it when it runs on this machine. */
export interface Connection {
  readonly client: Client
  readonly url: string
  readonly daemon?: Running
}

/**
 * Finds the daemon that the command line names, with the given token, else a session of its owner that ends with the
 * work.
 */
export const connected = async <T>(
  terminal: Terminal,
  given: GivenArguments,
  work: (connection: Connection) => Promise<T>,
): Promise<T> => {
  const { url, daemon } = await whichDaemon(terminal, given)
  const token = await tokenOf(terminal, given)
  if (token) return work({ client: signed(createClient({ url, token }), terminal), url, ...(daemon && { daemon }) })
  if (!daemon)
    throw new CommandFailure(
      EXIT.failed,
      `no credential for ${url}: it is no daemon of this user on this machine, so put a control token into `
        + 'SANDBOX_TOKEN',
    )
  return asOwner(daemon, terminal, work)
}

/** The control token given: never as an argument, which others on this machine see. */
const tokenOf = async (terminal: Terminal, given: GivenArguments): Promise<string | undefined> => {
  const file = given.text('token-file')
  if (file === undefined) return terminal.env.SANDBOX_TOKEN
  return (
    (await inputText(terminal, file, '--token-file')).trim()
    || misused(`--token-file: expected a control token, found nothing in ${file}`)
  )
}

/** Acts as the owner of a daemon of this machine while the work lasts. */
export const asOwner = async <T>(
  daemon: Running,
  terminal: Pick<Terminal, 'signal' | 'sign'>,
  work: (connection: Connection) => Promise<T>,
): Promise<T> => {
  const open = async () =>
    (await askLogin<{ token: string }>(daemon, { do: 'session', device: 'sandbox cli' }, terminal.signal)).token
  // Such a session ends with the daemon; a stream that outlives a restart needs another.
  const client = signed(createClient({ url: daemon.url, session: await open(), renew: open }), terminal)
  try {
    return await work({ client, url: daemon.url, daemon })
  } finally {
    await client
      .call('POST /system/sessions/revoke', { current: true }, { signal: AbortSignal.timeout(1000) })
      .catch(() => {})
  }
}

/** A client whose calls show that the program is at work while they take long. */
const signed = (client: Client, { sign }: Pick<Terminal, 'sign'>): Client =>
  sign ? { call: (...asked) => sign.during(() => client.call(...asked)) } : client

/** Asks a daemon's login socket; throws the refusal it answers, or `Unreached`. */
export const askLogin = async <T extends object>(
  { socket, url }: Running,
  request: SocketRequest,
  signal: AbortSignal,
): Promise<T> => {
  if (!socket)
    throw new CommandFailure(
      EXIT.failed,
      `the daemon at ${url} has its local sign-in switched off: put a control token into SANDBOX_TOKEN`,
    )
  try {
    return await askSocket<T>(socket, request, signal)
  } catch (error) {
    throw error instanceof Refusal && error.reason === 'unavailable' ? new Unreached(error.message, error) : error
  }
}

/** The daemon the command line means, on this machine or by its address. */
export const whichDaemon = async (
  terminal: Terminal,
  given: GivenArguments,
): Promise<{ url: string; daemon?: Running }> => {
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
