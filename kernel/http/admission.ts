import type { Caller } from '../../sdk/types.js'
import { refuse } from '../../sdk/refusal.js'
import { admit } from '../auth/admit.js'
import type { Auth } from '../auth/auth.js'
import { readCredential } from '../auth/credential.js'
import type { CallAccess, TicketAccess } from '../manifest.js'
import type { Connections } from './connections.js'
import { refusePlain } from './origin.js'
import type { RequestContext, RequestStep } from './request.js'

export interface AdmissionDeps {
  readonly auth: Auth
  /** Keeps connections on which a valid credential was sent. */
  readonly connections: Pick<Connections, 'keep'>
}

/** Admits the caller by credential or ticket, as the route's access requires, and counts the call while it runs. */
export const admitCaller =
  (deps: AdmissionDeps, access: CallAccess): RequestStep =>
  (ctx, next) => {
    const { caller, leave } = admitted(deps, ctx, access)
    ctx.state.caller = caller
    ctx.state.leave = leave
    return next()
  }

/** The admitted caller, and `leave`: call it when the call has ended or its stream has begun. */
export const admitted = (
  deps: AdmissionDeps,
  ctx: RequestContext,
  access: CallAccess,
): { caller: Caller; leave: () => void } => {
  const { arrival } = ctx.state
  if ('open' in access) {
    if (access.ticket) return ticketed(deps, ctx, access.id, access.ticket)
    if (arrival.bearer !== undefined) refusePlain(arrival)
    return { caller: STRANGER, leave: () => {} }
  }
  const credential = readCredential(arrival.head)
  if (!credential && access.ticket && ctx.query.ticket !== undefined)
    return ticketed(deps, ctx, access.id, access.ticket)
  if (!credential)
    return refuse(
      'unauthenticated',
      'no credential: send a session as "authorization: Bearer …" or a control token as "x-sandbox-control"',
    )
  refusePlain(arrival)
  const { method, path } = ctx
  const caller = deps.auth.authenticate(credential, arrival.address, { id: access.id, method, path })
  deps.connections.keep(ctx.req.socket, credentialOf(caller))
  admit(caller, access)
  return { caller, leave: deps.auth.limits.enter(credentialOf(caller)) }
}

const ticketed = ({ auth, connections }: AdmissionDeps, ctx: RequestContext, id: string, wanted: TicketAccess) => {
  const { arrival } = ctx.state
  refusePlain(arrival)
  const { ticket, [wanted.name ?? '']: name = '' } = ctx.query
  if (typeof ticket !== 'string')
    return refuse(
      'unauthenticated',
      'no ticket: ask for one at POST /system/ws-ticket and send it in the query field ticket',
    )
  const caller = auth.redeem({ ticket, purpose: wanted.for, name: String(name) }, arrival.address)
  connections.keep(ctx.req.socket, credentialOf(caller))
  return { caller: admit(caller, { id, role: wanted.role, tokens: [] }), leave: () => {} }
}

/** The key of a caller's rate limits. */
const credentialOf = ({ sessionId, tokenId, actor }: Caller): string => sessionId ?? tokenId ?? actor

const STRANGER: Caller = { kind: 'session', actor: 'stranger', role: 'viewer' }
