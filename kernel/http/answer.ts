import type { Context, GivenBytes } from '../../sdk/contract.js'
import type { Caller, HttpFacts } from '../../sdk/types.js'
import { isStream } from '../../sdk/wire.js'
import type { CallAccess } from '../manifest.js'
import type { KernelServices } from '../services.js'
import type { OpenStreams } from '../streams/open-streams.js'
import { PresenceBook } from './presence.js'
import { sendBytes, sendStream, sendValue } from './reply.js'
import type { RequestContext, RequestStep } from './request.js'

export interface AnswerDeps {
  readonly kernel: KernelServices
  readonly streams: OpenStreams
}

/** Makes the call and sends its result: a value, bytes or a stream. */
export const sendAnswer =
  ({ kernel, streams }: AnswerDeps, call: string, access: CallAccess): RequestStep =>
  async ctx => {
    const { caller, input, leave, reply } = ctx.state
    const context = new HttpContext(ctx)
    const value = await kernel.calls.answer(call, input, context)
    const match = ctx.req.headers['if-none-match']
    const etag = 'etag' in access && access.etag === true
    // Strangers share no credential: the group limits their streams.
    const counted = !('open' in access && access.ownOrigins)
    if (isBytes(value)) return sendBytes(reply, value, match)
    if (!isStream(value)) return sendValue(reply, value, etag, match)
    const end = streams.enter(caller, context.presence.ended, counted)
    ctx.state.streamed = true
    leave?.()
    try {
      await sendStream({ ...reply, kernel, signal: context.signal, lastEventId: context.http.lastEventId }, value)
    } finally {
      end()
    }
  }

/**
 * The context of a call that a request makes. The facts and the signal are made when the handler asks for them.
 *
 * A class, because each object literal with a getter has a hidden class of its own, which lasts until a full garbage
 * collection: a fifth of the time of a request.
 */
class HttpContext implements Context {
  readonly caller: Caller
  readonly trusted = false
  readonly presence: PresenceBook
  readonly #ctx: RequestContext

  constructor(ctx: RequestContext) {
    this.caller = ctx.state.caller
    this.presence = new PresenceBook(ctx.res)
    this.#ctx = ctx
  }

  get http(): HttpFacts {
    return httpFactsOf(this.#ctx)
  }

  /** Aborted when the client disconnects before its answer is complete. */
  get signal(): AbortSignal {
    return this.presence.ended.signal
  }
}

/** The facts of the HTTP request that a handler may use. */
export const httpFactsOf = (ctx: RequestContext): HttpFacts => {
  const { head, ownHost, origin, foreign, ...facts } = ctx.state.arrival
  const { accept, 'accept-encoding': acceptEncoding, 'if-match': ifMatch, 'if-range': ifRange, range } = ctx.req.headers
  const { 'idempotency-key': idempotencyKey, 'if-none-match': ifNoneMatch } = ctx.req.headers
  const contentEncoding = ctx.req.headers['content-encoding']
  const pageOrigin = head.get('origin')
  return {
    ...facts,
    ...(contentEncoding !== undefined && { contentEncoding }),
    ...(pageOrigin !== undefined && { pageOrigin }),
    ...(ctx.req.method === 'HEAD' && { headOnly: true as const }),
    ...(ifNoneMatch !== undefined && { ifNoneMatch }),
    ...(accept !== undefined && { accept }),
    ...(acceptEncoding !== undefined && { acceptEncoding: String(acceptEncoding) }),
    ...(ifMatch !== undefined && { ifMatch }),
    ...(ifRange !== undefined && { ifRange: String(ifRange) }),
    ...(range !== undefined && { range }),
    lastEventId: head.get('last-event-id'),
    ...(idempotencyKey !== undefined && { idempotencyKey: String(idempotencyKey) }),
  }
}

export const isBytes = (value: unknown): value is GivenBytes =>
  typeof value === 'object' && value !== null && 'content-type' in value
