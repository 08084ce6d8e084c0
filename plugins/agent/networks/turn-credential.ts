import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { ignored, type Host } from '../../../sdk/index.js'
import { hashOf, holds } from '../../../sdk/node/access/secret.js'
import type { Listener } from '../../../sdk/node/network/addresses.js'
import { DAEMON_PORT } from '../../../sdk/node/network/own-network.js'
import type { Env } from '../../../sdk/node/programs/run.js'
import { patternFor, routePattern, type RoutePattern } from '../../../sdk/node/extension/entries.js'
import type { StoredValues } from '../secrets/stored-values.js'
import type { Turn } from '../turn/turn.js'
import type { TurnNetwork } from '../turn/environment/networks.js'

/** What the credentials of turns stand on. */
export interface TurnCredentialDeps {
  readonly host: Pick<Host, 'call' | 'log'>
  /** A credential is masked like a stored value, in all that a turn says and sees. */
  readonly stored: Pick<StoredValues, 'hide'>
  readonly listeners: () => Promise<readonly Listener[]>
}

/** Tools that make the same calls: a turn that is narrowed to others makes them by no command either. */
const TOOLS = ['Propose', 'Need']
/** The variable that holds it. */
export const TURN_TOKEN = 'SANDBOX_TURN_TOKEN'
const HEADER = 'x-sandbox-turn'
/** Headers of a request and of its answer that pass; everything else is the daemon's own. */
const ASKED = [
  'accept',
  'content-type',
  'content-length',
  'transfer-encoding',
  'idempotency-key',
  'user-agent',
] as const
const ANSWERED = ['content-type', 'content-length', 'transfer-encoding', 'cache-control', 'retry-after'] as const

/**
 * The variables with which commands of a turn call the daemon, made when the first command starts.
 *
 * They lead to a server of this turn alone: it takes nothing but its credential, passes on nothing but the calls that a
 * turn may make, and closes with the turn. So no command reaches an open route of the daemon, or spends what an address
 * may fail with.
 */
export const turnCredential = (
  deps: TurnCredentialDeps,
  turn: Pick<Turn, 'conversationId' | 'run' | 'ended' | 'signal'>,
  network: Pick<TurnNetwork, 'serve'>,
  allowedTools: readonly string[] = TOOLS,
): (() => Promise<Env>) => {
  if (!TOOLS.every(tool => allowedTools.includes(tool))) return async () => ({})
  let made: Promise<Env> | undefined
  const make = async (): Promise<Env> => {
    const { host, stored } = deps
    const { conversationId } = turn
    const { groups } = await host.call('kernel.groups')
    const patterns = groups.flatMap(({ routes }) =>
      routes.flatMap(({ call, turns }) => (turns ? (routePattern(call) ?? []) : [])),
    )
    const { id, token } = await host.call('kernel.turn.mint', { conversationId })
    const shown = stored.hide({ name: TURN_TOKEN, value: token })
    // A server that is handed its connections keeps no list of them.
    const sockets = new Set<Socket>()
    let over = false
    const server = createServer((asked, answer) => {
      passOn(deps, { token, patterns }, asked, answer).catch((error: unknown) => {
        host.log.error('passing on a call of a turn failed', { run: turn.run, error: String(error) })
        answer.destroy()
      })
    })
    server.on('connection', (socket: Socket) => {
      if (over) return void socket.destroy()
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    const closeAll = () => {
      for (const socket of sockets) socket.destroy()
    }
    const end = () => {
      over = true
      server.close()
      closeAll()
      shown()
      void host.call('kernel.turn.end', { id }).catch(ignored('a daemon that stops has no credentials any more'))
    }
    void turn.ended.then(end)
    turn.signal.addEventListener('abort', closeAll, { once: true })
    const address = await network.serve(server, DAEMON_PORT)
    // The turn ended meanwhile.
    if (over) server.close()
    return { SANDBOX_DAEMON: address, [TURN_TOKEN]: token }
  }
  // A command of a turn that has none runs all the same.
  return () =>
    (made ??= make().catch((error: unknown) => {
      deps.host.log.warn('a turn got no credential', { run: turn.run, error: String(error) })
      return {}
    }))
}

/** What one turn may ask for. */
interface Granted {
  readonly token: string
  readonly patterns: readonly RoutePattern[]
}

const refused = (answer: ServerResponse, status: number, reason: string, message: string): void => {
  // What is left of the request is not read.
  answer.writeHead(status, { 'content-type': 'application/json; charset=utf-8', connection: 'close' })
  answer.end(JSON.stringify({ message, reason }))
}

/** Whether a request shows the credential of the turn, and no other. */
const isOwn = ({ headersDistinct }: IncomingMessage, token: string): boolean => {
  const [shown = '', ...more] = headersDistinct[HEADER] ?? []
  return more.length === 0 && holds([hashOf(token)], hashOf(shown))
}

/** The segments of a request's path; undefined: it has none that are whole. */
const segmentsOf = (url: string): string[] | undefined => {
  const [path = ''] = url.split('?', 1)
  if (!path.startsWith('/')) return undefined
  try {
    return path.slice(1).split('/').map(decodeURIComponent)
  } catch {
    return undefined
  }
}

const passOn = async (
  { host, listeners }: TurnCredentialDeps,
  { token, patterns }: Granted,
  asked: IncomingMessage,
  answer: ServerResponse,
): Promise<void> => {
  const { method = '', url = '', headers } = asked
  asked.on('error', ignored('its client has gone'))
  answer.on('error', ignored('its client has gone'))
  if (!isOwn(asked, token))
    return refused(answer, 401, 'unauthenticated', `expected the credential of this turn in ${HEADER}: $${TURN_TOKEN}`)
  const segments = segmentsOf(url)
  if (!segments || !patternFor(patterns, method, segments)) {
    const calls = patterns.map(({ entry }) => entry).join(', ')
    return refused(
      answer,
      403,
      'forbidden',
      `a turn may make the calls ${calls} and no other; propose what else is to be done at POST /approvals, so that a `
        + 'person decides',
    )
  }
  const [listener] = await listeners().catch(() => [])
  // The turn ended, or its client left: a credential that has ended counts as a failed one.
  if (asked.socket.destroyed) return
  if (!listener) return refused(answer, 503, 'unavailable', 'the daemon listens nowhere: it is stopping')
  const sent = request({
    ...near(listener),
    method,
    path: url,
    agent: false,
    headers: {
      ...Object.fromEntries(ASKED.flatMap(name => (headers[name] === undefined ? [] : [[name, headers[name]]]))),
      [HEADER]: token,
    },
  })
  sent.on('error', error => {
    // A client that leaves, or leaves again and again, is no news.
    if (asked.socket.destroyed) return
    host.log.warn('a call of a turn did not reach the daemon', { error: String(error) })
    if (answer.headersSent) answer.destroy()
    else refused(answer, 503, 'unavailable', 'the daemon did not answer: try again')
  })
  answer.once('close', () => sent.destroy())
  pipeline(asked, sent, () => {})
  const [came] = (await once(sent, 'response').catch(() => [])) as [IncomingMessage?]
  if (!came) return
  const passed = ANSWERED.flatMap(name => (came.headers[name] === undefined ? [] : [[name, came.headers[name]]]))
  answer.writeHead(came.statusCode ?? 502, { ...(Object.fromEntries(passed) as object), connection: 'close' })
  pipeline(came, answer, () => {})
}

/** A listener as this machine reaches it. */
const near = ({ host, port }: Listener): { readonly host: string; readonly port: number } => ({
  host: host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host,
  port,
})
