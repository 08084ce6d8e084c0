import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { ignored, type Host, type TurnReach } from '../../../sdk/index.js'
import { hashOf, holds } from '../../../sdk/node/access/secret.js'
import type { Listener } from '../../../sdk/node/network/addresses.js'
import { DAEMON_PORT } from '../../../sdk/node/network/own-network.js'
import type { Env } from '../../../sdk/node/programs/run.js'
import { patternFor, routePattern, type RoutePattern } from '../../../sdk/node/extension/entries.js'
import type { StoredValues } from '../secrets/stored-values.js'
import type { GroupRoute } from '../../../sdk/kernel.js'
import type { RunEntry } from '../turn/run-entry.js'
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
  'if-none-match',
  'last-event-id',
  'range',
  'user-agent',
] as const
const ANSWERED = [
  'accept-ranges',
  'cache-control',
  'content-disposition',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'retry-after',
  'transfer-encoding',
] as const

/**
 * The variables with which commands of a turn call the daemon, made when the first command starts.
 *
 * They lead to a server of this turn alone: it takes nothing but its credential, passes on nothing but the calls that a
 * turn may make, and closes with the turn. So no command reaches an open route of the daemon, or spends what an address
 * may fail with.
 */
export const turnCredential = (
  deps: TurnCredentialDeps,
  turn: Pick<Turn, 'conversationId' | 'run' | 'ended' | 'signal' | 'markOutside'> & {
    readonly entry: Pick<RunEntry, 'onOutsiders'>
  },
  network: Pick<TurnNetwork, 'serve'>,
  reachNow: () => TurnReach,
  allowedTools: readonly string[] = TOOLS,
): (() => Promise<Env>) => {
  if (!TOOLS.every(tool => allowedTools.includes(tool))) return async () => ({})
  let made: Promise<Env> | undefined
  const make = async (): Promise<Env> => {
    const { host, stored } = deps
    const { conversationId } = turn
    const { groups } = await host.call('kernel.groups')
    const reach = reachNow()
    const isOwn = ({ turns }: GroupRoute) => turns === true || (turns === 'sandbox' && reach.sandbox)
    const patternsOf = (is: (route: GroupRoute) => boolean) =>
      groups.flatMap(({ routes }) => routes.flatMap(route => (is(route) ? (routePattern(route.call) ?? []) : [])))
    const own = patternsOf(isOwn)
    const reads = reach.sandbox ? patternsOf(route => !isOwn(route) && route.tokens?.includes('read') === true) : []
    const minting = host.call('kernel.turn.mint', { conversationId, reach })
    turn.entry.onOutsiders = async () => void (await host.call('kernel.turn.narrow', { id: (await minting).id }))
    const { id, token } = await minting
    const shown = stored.hide({ name: TURN_TOKEN, value: token })
    // A server that is handed its connections keeps no list of them.
    const sockets = new Set<Socket>()
    let over = false
    const server = createServer((asked, answer) => {
      passOn(deps, { turn, token, own, reads }, asked, answer).catch((error: unknown) => {
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

/** First segments of reads that show the workspace and the sandbox themselves, and no words of others. */
const OWN_TREE: ReadonlySet<string> = new Set([
  'areas',
  'capabilities',
  'git',
  'history',
  'info',
  'panels',
  'personas',
  'ports',
  'providers',
  'settings',
  'skills',
  'workspace',
])

/** Whether a read shows the workspace and the sandbox themselves, and not the private copy of another conversation. */
const isOwnTree = ([first = '']: readonly string[], url: string, { conversationId }: Pick<Turn, 'conversationId'>) => {
  const copies = new URLSearchParams(url.slice(url.indexOf('?') + 1)).getAll('agent')
  return OWN_TREE.has(first) && copies.every(id => id === conversationId)
}

/** What one turn may ask for. */
interface Granted {
  readonly token: string
  readonly turn: Pick<Turn, 'conversationId' | 'markOutside'>
  readonly own: readonly RoutePattern[]
  /** What it reads like a control token of scope `read`. */
  readonly reads: readonly RoutePattern[]
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
  { token, turn, own, reads }: Granted,
  asked: IncomingMessage,
  answer: ServerResponse,
): Promise<void> => {
  const { method = '', url = '', headers } = asked
  asked.on('error', ignored('its client has gone'))
  answer.on('error', ignored('its client has gone'))
  if (!isOwn(asked, token))
    return refused(answer, 401, 'unauthenticated', `expected the credential of this turn in ${HEADER}: $${TURN_TOKEN}`)
  const segments = segmentsOf(url)
  const isRead = segments !== undefined && patternFor(reads, method, segments) !== undefined
  if (!segments || (!isRead && !patternFor(own, method, segments))) {
    const calls = own.map(({ entry }) => entry).join(', ')
    const more = reads.length > 0 ? ', what a control token of scope read reads,' : ''
    return refused(
      answer,
      403,
      'forbidden',
      `a turn may make the calls ${calls}${more} and no other; propose what else is to be done at POST /approvals, so `
        + 'that a person decides',
    )
  }
  // Records hold words of others: they count as content from outside before the turn sees them.
  if (isRead && !isOwnTree(segments, url, turn)) await turn.markOutside(`${method} /${segments[0]} of the sandbox`)
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
