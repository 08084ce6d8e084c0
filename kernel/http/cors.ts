import { refuse } from '../../sdk/refusal.js'
import type { Deployment } from '../config/deployment.js'
import type { AnyOrigin } from './any-origin.js'
import { createArrival } from './origin.js'
import type { OwnOrigins } from './own-origins.js'
import type { RequestContext, RequestStep } from './request.js'

const SHARED = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'access-control-allow-headers':
    'authorization, content-type, x-sandbox-control, last-event-id, if-match, if-none-match, range',
  'access-control-expose-headers': 'etag, content-range, content-disposition, retry-after, x-sandbox-build',
}

/**
 * Checks host and origin, refuses foreign ones, and answers CORS preflight requests (Fetch standard, CORS protocol).
 */
export const checkOrigin = (
  http: NonNullable<Deployment['http']>,
  { anyOrigin, ownOrigins }: { readonly anyOrigin: AnyOrigin; readonly ownOrigins: OwnOrigins },
  publicHost?: string,
): RequestStep => {
  const arrive = createArrival(http, publicHost)
  return (ctx, next) => {
    const arrival = (ctx.state.arrival = arrive(ctx.req))
    const own = anyOrigin.linesOf(ctx.req.url)
    const judged = arrival.ownHost && !arrival.publicHost ? ownOrigins.judge(ctx) : undefined
    if (judged) return judged.then(() => (ctx.req.method === 'OPTIONS' ? preflight(ctx, true) : next()))
    if (own) ctx.state.reply.lines.setAll(own)
    else if (arrival.origin) ctx.state.reply.lines.setAll(SHARED).set('access-control-allow-origin', arrival.origin)
    if (!arrival.ownHost && ctx.path !== '/health') {
      refuse(
        'forbidden',
        `${ctx.req.headers.host} is not a name of this sandbox: add it to http.hosts, or use a loopback address`,
      )
    }
    if (arrival.foreign && !own) refuse('forbidden', arrival.foreign)
    return ctx.req.method === 'OPTIONS' ? preflight(ctx, own !== undefined) : next()
  }
}

/** Answers `OPTIONS`, the same for every path that follows the sandbox's list. */
const preflight = (ctx: RequestContext, anyOrigin: boolean): void => {
  const { arrival, reply } = ctx.state
  if (arrival.origin || anyOrigin) {
    reply.lines.set('access-control-max-age', 600)
    if (ctx.get('access-control-request-private-network') === 'true')
      reply.lines.set('access-control-allow-private-network', 'true')
  }
  reply.lines.write(ctx.res, 204).end()
}
