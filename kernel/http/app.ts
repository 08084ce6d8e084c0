import Koa, { type Context as KoaContext } from 'koa'
import type { Bytes, Context, Contract, GivenBytes } from '../../sdk/contract.js'
import { frameOf, isRoute } from '../../sdk/contract.js'
import { Refusal, refuse } from '../../sdk/refusal.js'
import type { Caller, HttpFacts } from '../../sdk/types.js'
import { answerKind } from './answer-kind.js'
import type { Connections } from './connections.js'
import { limitPipelining } from './pipelining.js'
import { explainInput } from '../../sdk/explain.js'
import { isStream } from '../../sdk/wire.js'
import { admit } from '../auth/admit.js'
import type { Auth } from '../auth/auth.js'
import { readCredential } from '../auth/credential.js'
import type { Deployment } from '../config.js'
import type { Group } from '../group.js'
import type { Logger } from '../logs/log.js'
import type { CallAccess, TicketAccess } from '../manifest.js'
import type { KernelServices } from '../services.js'
import { readForm } from './forms.js'
import { readFields, readJsonBody, readQuery } from './input.js'
import { Lines } from './head-lines.js'
import { PresenceBook } from './presence.js'
import { createArrival, refusePlain, type Arrival } from './origin.js'
import {
  askUpgrade,
  refuseMethod,
  sendBytes,
  sendRefusal,
  sendRetry,
  sendStream,
  sendValue,
  type HttpReply,
} from './reply.js'
import { Routes } from './routes.js'
import { Upgrades } from './sockets.js'
import type { OpenStreams } from '../streams/open-streams.js'

const JSON_LIMIT = 1 << 20

export interface AppOptions {
  readonly kernel: KernelServices
  readonly auth: Auth
  readonly streams: OpenStreams
  /** Keeps each connection on which a valid credential was shown. */
  readonly connections: Pick<Connections, 'keep'>
  readonly log: Logger
  readonly http: NonNullable<Deployment['http']>
  /** Where files of forms lie until their call is answered. */
  readonly uploads: string
}

/** Who was let in, and what to call when the call is over or its stream has begun. */
interface Admitted {
  readonly caller: Caller
  readonly leave: () => void
}

interface SocketRoute {
  readonly contract: Contract
  readonly access: CallAccess
  readonly params: { readonly [name: string]: string }
  readonly group: string
}

/**
 * The HTTP face of the call table: one Koa application, in which each request takes the same steps in the same order.
 */
export class App {
  readonly koa = new Koa()
  readonly upgrades = new Upgrades()
  readonly #options: AppOptions
  readonly #routes = new Routes()

  constructor(options: AppOptions) {
    this.#options = options
    const arrive = createArrival(options.http)
    const inTurn = limitPipelining()
    this.koa.silent = true
    this.koa.use(async ctx => {
      ctx.respond = false
      const reply: HttpReply = { res: ctx.res, lines: new Lines(), head: ctx.method === 'HEAD' }
      try {
        const waits = inTurn(ctx.req, ctx.res)
        if (waits && !(await waits)) return
        await this.#serve(ctx, arrive(ctx.req), reply)
      } catch (error) {
        this.#fail(ctx, reply, error)
      }
    })
  }

  /** Serves every routed call of a group. */
  add(group: Pick<Group, 'manifest' | 'contract'>): void {
    const { manifest } = group
    const { kernel } = this.#options
    for (const [call, access] of Object.entries(manifest.routes)) {
      if (!isRoute(call)) continue
      const [method = '', path = ''] = call.split(' ')
      let found: ReturnType<typeof answerKind> | undefined
      let contract: Contract
      const kind = () => (found ??= method === 'GET' ? answerKind(contract.schema(), call) : 'value')
      this.#routes.add(method, path, async (ctx, params, reply, arrival) => {
        contract ??= await group.contract()
        if (reply.head && kind() !== 'value')
          refuseMethod(reply, `${ctx.path} is a ${kind()}: HEAD has nothing to tell of it`)
        else if (kind() === 'socket')
          await this.#socket(ctx, call, { access, contract, params, group: manifest.name }, reply, arrival)
        else {
          const { caller, leave } = this.#admitted(ctx, access, arrival)
          try {
            if (!access.early) await kernel.boot.gate(manifest.name)
            const { body = JSON_LIMIT, forms = [] } = access
            const form = forms.length > 0 ? await readForm(ctx, forms, body, this.#options.uploads) : undefined
            try {
              const input =
                method === 'GET'
                  ? readQuery(ctx.querystring, call, contract.schema())
                  : form
                    ? readFields(form.fields, 'body', call, contract.schema())
                    : await readJsonBody(ctx.req, body)
              await this.#answer(
                ctx,
                call,
                { ...input, ...params },
                { caller, leave },
                arrival,
                reply,
                'etag' in access && access.etag === true,
              )
            } finally {
              await form?.forget()
            }
          } finally {
            leave()
          }
        }
      })
    }
  }

  /** Serves one of the kernel's own routes, which ask for no credential. */
  own(path: string, answer: (arrival: Arrival) => Promise<Bytes | object> | Bytes | object): void {
    this.#routes.add('GET', path, async (ctx, _params, reply, arrival) => {
      const value = await answer(arrival)
      return isBytes(value) ? sendBytes(reply, value, ctx.req.headers['if-none-match']) : sendValue(reply, value)
    })
  }

  async #serve(ctx: KoaContext, arrival: Arrival, reply: HttpReply): Promise<void> {
    if (arrival.origin) reply.lines.setAll(SHARED).set('access-control-allow-origin', arrival.origin)
    if (!arrival.ownHost && ctx.path !== '/health') {
      refuse(
        'forbidden',
        `this sandbox is not known as ${ctx.req.headers.host}: add the name to http.hosts, or use a loopback address`,
      )
    }
    if (arrival.foreign) refuse('forbidden', arrival.foreign)
    if (ctx.method === 'OPTIONS') return preflight(ctx, arrival, reply)
    await this.#routes.serve(ctx, reply, arrival)
  }

  #admitted(ctx: KoaContext, access: CallAccess, arrival: Arrival): Admitted {
    if ('open' in access) {
      if (access.ticket) return this.#ticketed(ctx, access.id, access.ticket, arrival)
      if (arrival.bearer !== undefined) refusePlain(arrival)
      return { caller: STRANGER, leave: () => {} }
    }
    const credential = readCredential(arrival.head)
    if (!credential && access.ticket && ctx.query.ticket !== undefined)
      return this.#ticketed(ctx, access.id, access.ticket, arrival)
    if (!credential)
      return refuse(
        'unauthenticated',
        'no credential: send a session as "authorization: Bearer …" or a control token as "x-sandbox-control"',
      )
    refusePlain(arrival)
    const { auth, connections } = this.#options
    const caller = auth.authenticate(credential, arrival.address)
    connections.keep(ctx.req.socket, credentialOf(caller))
    admit(caller, access)
    return { caller, leave: auth.limits.enter(credentialOf(caller)) }
  }

  #ticketed({ query, req }: KoaContext, id: string, wanted: TicketAccess, arrival: Arrival): Admitted {
    refusePlain(arrival)
    const { ticket, [wanted.name ?? '']: name = '' } = query
    if (typeof ticket !== 'string')
      return refuse(
        'unauthenticated',
        'no ticket: ask for one at POST /system/ws-ticket and send it in the query field ticket',
      )
    const caller = this.#options.auth.redeem({ ticket, purpose: wanted.for, name: String(name) }, arrival.address)
    this.#options.connections.keep(req.socket, credentialOf(caller))
    return { caller: admit(caller, { id, role: wanted.role, tokens: [] }), leave: () => {} }
  }

  async #answer(
    ctx: KoaContext,
    call: string,
    input: object,
    { caller, leave }: Admitted,
    arrival: Arrival,
    begun: HttpReply,
    etag: boolean,
  ): Promise<void> {
    const { kernel, streams } = this.#options
    const presence = new PresenceBook(ctx.res)
    const http = factsOf(ctx, arrival)
    const context: Context = {
      caller,
      trusted: false,
      http,
      get signal() {
        return presence.ended.signal
      },
    }
    const value = await kernel.calls.answer(call, input, context)
    const match = ctx.req.headers['if-none-match']
    if (isBytes(value)) return sendBytes(begun, value, match)
    if (!isStream(value)) return sendValue(begun, value, etag, match)
    const end = streams.enter(caller, presence.ended)
    leave()
    try {
      await sendStream(
        {
          ...begun,
          kernel,
          signal: presence.ended.signal,
          ...(http.lastEventId !== undefined && { lastEventId: http.lastEventId }),
        },
        value,
      )
    } finally {
      end()
    }
  }

  async #socket(
    ctx: KoaContext,
    call: string,
    { access, contract, params, group }: SocketRoute,
    reply: HttpReply,
    arrival: Arrival,
  ): Promise<void> {
    const { kernel, streams, log } = this.#options
    const asked = this.upgrades.of(ctx.req, ctx.res)
    if (!asked)
      return askUpgrade(
        reply,
        `${ctx.path} is a socket: expected a request to upgrade to a WebSocket, found a plain GET`,
      )
    const { caller, leave } = this.#admitted(ctx, access, arrival)
    const ended = new AbortController()
    const left = streams.hold(caller, ended)
    try {
      if (!access.early) await kernel.boot.gate(group)
      const input = { ...readQuery(ctx.querystring, call, contract.schema()), ...params }
      await asked.serve({
        ended,
        answer: async frames => {
          const context: Context = { caller, trusted: false, http: factsOf(ctx, arrival), signal: ended.signal, frames }
          const value = await kernel.calls.answer(call, input, context)
          leave()
          return value as AsyncIterable<unknown>
        },
        fits: frame => {
          const result = contract.request({ call: frameOf(call), input: frame })
          return result.success
            ? result.data.input
            : refuse('invalid', `a frame: ${explainInput(result.errors, contract).message}`)
        },
        failed: error => log.error({ err: error, path: ctx.path }, 'a socket failed'),
      })
    } finally {
      leave()
      left()
    }
  }

  #fail(ctx: KoaContext, reply: HttpReply, error: unknown): void {
    const refusal = Refusal.from(error)
    // Work that was broken off because its asker left is no failure of anybody.
    if (refusal.reason === 'failed' && !(ctx.res.closed && (error as Error).name === 'AbortError')) {
      this.#options.log.error({ err: refusal.cause ?? refusal, method: ctx.method, path: ctx.path }, 'a request failed')
    }
    ctx.res.shouldKeepAlive &&= ctx.req.complete
    if (!ctx.req.complete) reply.lines.set('connection', 'close')
    if (refusal.reason === 'too-many' && ctx.query.ticket !== undefined && ctx.get('accept') === 'text/event-stream')
      sendRetry(reply, refusal)
    else sendRefusal(reply, refusal)
  }
}

/** What a caller's limits are counted by. */
const credentialOf = ({ sessionId, tokenId, actor }: Caller): string => sessionId ?? tokenId ?? actor

const STRANGER: Caller = { kind: 'session', actor: 'stranger', role: 'viewer' }

const SHARED = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'access-control-allow-headers':
    'authorization, content-type, x-sandbox-control, last-event-id, if-match, if-none-match, range',
  'access-control-expose-headers': 'etag, content-range, content-disposition, retry-after, x-sandbox-build',
}

/** The answer to `OPTIONS`, the same for every path (Fetch standard, CORS preflight). */
const preflight = (ctx: KoaContext, { origin }: Arrival, { res, lines }: HttpReply): void => {
  if (origin) {
    lines.set('access-control-max-age', 600)
    if (ctx.get('access-control-request-private-network') === 'true')
      lines.set('access-control-allow-private-network', 'true')
  }
  lines.write(res, 204).end()
}

const factsOf = (ctx: KoaContext, { head, ownHost, origin, foreign, ...facts }: Arrival): HttpFacts => {
  const { 'if-match': ifMatch, 'if-range': ifRange, range } = ctx.req.headers
  const lastEventId = head.get('last-event-id')
  if (ifMatch === undefined && ifRange === undefined && range === undefined && lastEventId === undefined) return facts
  const given = Object.entries({ ifMatch, ifRange, range, lastEventId }).filter(([, value]) => value !== undefined)
  return { ...facts, ...Object.fromEntries(given) }
}

const isBytes = (value: unknown): value is GivenBytes =>
  typeof value === 'object' && value !== null && 'content-type' in value
