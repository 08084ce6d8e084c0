import { refuse, type Context, type Host } from '../../../sdk/index.js'
import { LinkError } from '../../../sdk/node/extension/link.js'
import type { BackendOperations, OperationOutput } from '../../../sdk/node/extension/protocol.js'
import type { ExtensionRecords } from '../runtime.js'
import { answerHeaders } from './answer-head.js'
import { bytesGiven } from '../../../sdk/node/extension/bytes.js'
import type { SubtreeHead, SubtreePiece, SubtreeRequest } from './contract.js'
import type { BackendProcess } from './process.js'
import type { PublishedEvents } from './events/published-events.js'
import { admitToRoute, callerKind } from './route-table.js'
import type { Backends } from './runtime.js'
import { eventPieces } from './events/event-pieces.js'

type Items = AsyncGenerator<SubtreeHead | SubtreePiece, void>
type RouteOutput = OperationOutput<BackendOperations, 'route'>

/** The handler of requests below `/x/`. */
export interface ServeDeps {
  readonly host: Pick<Host, 'call'>
  readonly records: Pick<ExtensionRecords, 'refused'>
  readonly backends: Backends
  readonly published: PublishedEvents
}

const EVENTS = '_events'

/** Answers one request below `/x/<id>/`. */
export async function* serveRequest(deps: ServeDeps, request: SubtreeRequest, context: Context): Items {
  const [id = '', ...path] = request.segments
  const refused = deps.records.refused(id)
  if (refused === 'absent') refuse('not-found', `no extension has the id ${id.slice(0, 130)}`)
  if (refused === 'off') refuse('conflict', `the extension ${id} is switched off`)
  if (refused === 'pending') refuse('conflict', `the extension ${id} waits for approval`)
  if (path[0]?.startsWith('_')) {
    if (path[0] !== EVENTS || path.length > 1 || request.method !== 'GET')
      refuse('not-found', 'nothing of the extension is served here')
    return yield* streamed(eventPieces(deps.published.read(id, context.signal)))
  }
  const backend = deps.backends.of(id)
  const running = await backend.running(context.signal)
  const route = backend.routes.find(request.method, path) ?? refuse('not-found', 'the extension has no such route')
  admitToRoute(context.caller, request.role, route)
  const body = request.body === undefined ? undefined : bodyOf(deps.host, request.body, context.signal)
  const { link } = running
  let answer: RouteOutput
  try {
    answer = await link.request(
      'route',
      {
        route: route.number,
        method: request.method,
        path: `/${path.join('/')}`,
        params: { ...route.params },
        query: queryOf(request.query),
        headers: request.headers,
        caller: { kind: callerKind(context.caller), actor: context.caller.actor, role: request.role },
        ...(body && { body: link.offer(body) }),
        ...(body && isJson(request.headers['content-type']) && { json: true as const }),
      },
      context.signal,
    )
  } catch (error) {
    if (error instanceof LinkError) refuse('failed', `the extension failed to answer: ${error.message.slice(0, 500)}`)
    throw error
  }
  yield* answered(running, backend.extension.id, answer)
}

async function* answered({ link }: BackendProcess, id: string, answer: RouteOutput): Items {
  const { status = 200, headers: given, json, bytes, pieces, events } = answer
  if (events) return yield* streamed(eventPieces(link.read(events)))
  const headers = answerHeaders(id.split('.', 1)[0]!, given)
  const isEmpty = status === 204 || status === 205 || status === 304
  if (isEmpty) return yield { kind: 'head', status, headers }
  if (pieces) {
    yield { kind: 'head', status, headers: { 'content-type': 'application/octet-stream', ...headers } }
    for await (const piece of link.read(pieces)) {
      if (!(piece instanceof Uint8Array)) refuse('failed', 'the extension sent a piece that is not bytes')
      yield { kind: 'piece', bytes: piece as Uint8Array }
    }
    return
  }
  const isJsonValue = bytes === undefined && json !== undefined
  const whole = bytes !== undefined ? bytesGiven('bytes', bytes) : Buffer.from(isJsonValue ? JSON.stringify(json) : '')
  const type = isJsonValue ? 'application/json; charset=utf-8' : 'application/octet-stream'
  yield {
    kind: 'head',
    status,
    headers: { 'content-type': type, ...headers, 'content-length': String(whole.length) },
  }
  if (whole.length > 0) yield { kind: 'piece', bytes: whole }
}

async function* streamed(pieces: AsyncIterable<Uint8Array>): Items {
  yield {
    kind: 'head',
    status: 200,
    headers: { ...answerHeaders(''), 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' },
  }
  for await (const bytes of pieces) yield { kind: 'piece', bytes }
}

async function* bodyOf(host: Pick<Host, 'call'>, body: number, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  for await (const { bytes } of await host.call('kernel.subtree.body', { body }, { signal })) yield bytes
}

const isJson = (type = ''): boolean => /^application\/(?:[\w.+-]+\+)?json\b/i.test(type)

const queryOf = (query: string): { [name: string]: string | string[] } => {
  const given = new URLSearchParams(query)
  return Object.fromEntries(
    [...new Set(given.keys())].map(name => {
      const values = given.getAll(name)
      return [name, values.length > 1 ? values : values[0]!]
    }),
  )
}
