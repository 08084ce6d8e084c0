import type { Context, GivenBytes } from '../../sdk/contract.js'
import type { HttpFacts } from '../../sdk/types.js'
import { isStream } from '../../sdk/wire.js'
import type { KernelServices } from '../services.js'
import type { OpenStreams } from '../streams/open-streams.js'
import type { Arrival } from './origin.js'
import { PresenceBook } from './presence.js'
import { sendBytes, sendStream, sendValue } from './reply.js'
import type { RequestContext, RequestStep } from './request.js'

export interface AnswerDeps {
  readonly kernel: KernelServices
  readonly streams: OpenStreams
}

/** Makes the call and sends its result: a value, bytes or a stream. */
export const sendAnswer =
  ({ kernel, streams }: AnswerDeps, call: string, etag: boolean): RequestStep =>
  async ctx => {
    const { caller, input, leave, reply } = ctx.state
    const presence = new PresenceBook(ctx.res)
    const http = httpFactsOf(ctx)
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
    if (isBytes(value)) return sendBytes(reply, value, match)
    if (!isStream(value)) return sendValue(reply, value, etag, match)
    const end = streams.enter(caller, presence.ended)
    leave()
    const { lastEventId } = http
    try {
      const signal = presence.ended.signal
      await sendStream({ ...reply, kernel, signal, ...(lastEventId !== undefined && { lastEventId }) }, value)
    } finally {
      end()
    }
  }

/** The facts of the HTTP request that a handler may use. */
export const httpFactsOf = (ctx: RequestContext): HttpFacts => {
  const { head, ownHost, origin, foreign, ...facts }: Arrival = ctx.state.arrival
  const { accept, 'accept-encoding': acceptEncoding, 'if-match': ifMatch, 'if-range': ifRange, range } = ctx.req.headers
  const { 'idempotency-key': idempotencyKey } = ctx.req.headers
  const lastEventId = head.get('last-event-id')
  return {
    ...facts,
    ...(accept !== undefined && { accept }),
    ...(acceptEncoding !== undefined && { acceptEncoding: String(acceptEncoding) }),
    ...(ifMatch !== undefined && { ifMatch }),
    ...(ifRange !== undefined && { ifRange: String(ifRange) }),
    ...(range !== undefined && { range }),
    ...(lastEventId !== undefined && { lastEventId }),
    ...(idempotencyKey !== undefined && { idempotencyKey: String(idempotencyKey) }),
  }
}

export const isBytes = (value: unknown): value is GivenBytes =>
  typeof value === 'object' && value !== null && 'content-type' in value
