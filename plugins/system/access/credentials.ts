import { type Caller, type Context, type Host, type Input, refuse } from '../../../sdk/index.js'
import type { AccessSession } from '../../../sdk/kernel.js'
import { record } from '../../../sdk/node/record/record.js'
import type { System } from '../contract.js'
import { plainValue } from './plain.js'

const OTHERS = 'only the owner ends the sessions of others'

/** The caller's own sessions; for the owner everybody's. */
export const listSessions = async (
  host: Pick<Host, 'call'>,
  { kind, role, email, sessionId }: Caller,
): Promise<{ sessions: AccessSession[] }> => {
  if (kind !== 'session' || email === undefined)
    refuse('forbidden', `sessions are listed for a signed-in person, found a caller of kind ${kind}`)
  const { sessions } = await host.call('kernel.session.list', role === 'owner' ? {} : { email: email! })
  return { sessions: sessions.map(one => ({ ...one, current: one.id === sessionId })) }
}

/** Ends the sessions named, if they are the caller's to end. */
export const revokeSessions = async (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  asked: Input<System, 'POST /system/sessions/revoke'>,
  context: Context,
): Promise<{ ok: true; revoked: number }> => {
  const { caller } = context
  const { current, id, email } = asked
  const named = [current, id, email].filter(given => given !== undefined).length
  if (named > 1) refuse('invalid', `expected one of current, id and email, found ${named} of them`)
  const revoke = async (which: { id?: string; email?: string }) => {
    const { revoked, lasting } = await host.call('kernel.session.revoke', which)
    // The command line opens and ends one with every command, on the machine itself.
    if (lasting > 0) await record(host, { type: 'session.revoked', extra: { ...which, revoked } }, context)
    return { ok: true as const, revoked }
  }
  const isOwner = caller.kind === 'session' && caller.role === 'owner'
  if (current)
    return revoke({
      id: caller.sessionId ?? refuse('invalid', 'current: expected a caller with a session, found none'),
    })
  if (email !== undefined) {
    const person = email.toLowerCase()
    return isOwner || person === caller.email ? revoke({ email: person }) : refuse('forbidden', OTHERS)
  }
  if (id !== undefined) {
    if (isOwner || id === caller.sessionId) return revoke({ id })
    return revoke({ id, email: caller.email ?? refuse('forbidden', OTHERS) })
  }
  return isOwner ? revoke({}) : refuse('forbidden', 'only the owner ends every session; send current to end this one')
}

/** Mints a control token for a program of the owner. */
export const mintToken = async (
  host: Pick<Host, 'call' | 'emit' | 'serves' | 'log'>,
  asked: Input<System, 'POST /system/control/tokens'>,
  context: Context,
): Promise<{ id: string; token: string }> => {
  const { scope, expiresAt } = asked
  const { kind, role, actor } = context.caller
  if (kind !== 'session' || role !== 'owner') {
    refuse('forbidden', `a session of the owner mints control tokens, found a caller of kind ${kind} and role ${role}`)
  }
  const label = plainValue(asked.label)
  if (!label) {
    const errors = [{ path: 'label', expected: 'a character that can be seen' }]
    refuse('invalid', 'label: expected a character that can be seen, found none', { errors })
  }
  const row = { label, scope, createdBy: actor, ...(expiresAt !== undefined && { expiresAt }) }
  const minted = await host.call('kernel.token.mint', row, { as: context })
  await record(host, { type: 'token.minted', extra: { id: minted.id, label, scope } }, context)
  host.emit('token.minted', { id: minted.id, label, scope, by: actor })
  return minted
}
