import { setImmediate as nextTurn } from 'node:timers/promises'
import { wantsPage } from '../../sdk/node/pages/message-page.js'
import { Refusal } from '../../sdk/refusal.js'
import type { Logger } from '../logs/log.js'
import { Lines } from './head-lines.js'
import { sendRefusal, sendRetry } from './reply.js'
import type { RequestContext, RequestStep } from './request.js'

/** Answers errors of later steps: a refusal with its own status, any other error with 500 and a log line. */
export const answerErrors =
  (log: Logger): RequestStep =>
  async (ctx, next) => {
    ctx.state.reply = { res: ctx.res, lines: new Lines(), head: ctx.req.method === 'HEAD' }
    try {
      await next()
    } catch (error) {
      // Node knows whether the request is complete once it has parsed what it received.
      if (!ctx.req.complete) await nextTurn()
      fail(log, ctx, error)
    } finally {
      ctx.state.leave?.()
    }
  }

const fail = (log: Logger, ctx: RequestContext, error: unknown): void => {
  const { reply } = ctx.state
  const refusal = Refusal.from(error)
  // An abort because the client disconnected is not a failure.
  if (refusal.reason === 'failed' && !(ctx.res.closed && (error as Error).name === 'AbortError'))
    log.error({ err: refusal.cause ?? refusal, method: ctx.method, path: ctx.path }, 'a request failed')
  ctx.res.shouldKeepAlive &&= ctx.req.complete
  if (!ctx.req.complete) reply.lines.set('connection', 'close')
  if (refusal.reason === 'too-many' && ctx.query.ticket !== undefined && ctx.get('accept') === 'text/event-stream')
    sendRetry(reply, refusal)
  else if (ctx.state.publicPage) sendRefusal(reply, asPublic(refusal), wantsPage(ctx.get('accept')))
  else sendRefusal(reply, refusal)
}

/** Malformed, unknown, blocked, expired and withdrawn look alike. */
const asPublic = (refusal: Refusal): Refusal =>
  refusal.reason === 'not-found' || refusal.reason === 'invalid'
    ? new Refusal('not-found', 'nothing is served at this address')
    : refusal
