import type { Handlers, Host } from '../../../sdk/index.js'
import type { OpenedSession } from '../../../sdk/kernel.js'
import { record } from '../../../sdk/node/record/record.js'
import { Budget } from '../../../sdk/node/access/budget.js'
import type { AccessCalls } from './contract.js'
import { listSessions, mintToken, revokeSessions } from './credentials.js'
import { recordDenials } from './denials.js'
import { Drivers } from './drivers.js'
import type { MemberCalls } from './members-contract.js'
import { memberCalls } from './members.js'
import { SignIn } from './sign-in.js'
import type { TicketCalls } from './tickets-contract.js'
import { ticketCalls } from './tickets.js'
import { ignored } from '../../../sdk/index.js'

/**
 * Serves sign-in, sessions, control tokens, members and tickets.
 *
 * @param hasBundle Whether there is a bundle of that name.
 */
export const accessCalls = (
  host: Host,
  hasBundle: (bundle: string) => boolean,
): Handlers<AccessCalls & MemberCalls & TicketCalls> => {
  const published = (domain: 'sessions' | 'members') => host.call('kernel.events.publish', { domain })
  const asked = new Budget(120)
  const denied = recordDenials(host)
  const drivers = new Drivers(host)
  const signIn = new SignIn(host, address => denied(address, 'identity token'))
  // Called at every end of a credential, its expiry included.
  host.on(
    'credential.ended',
    () => void published('sessions').catch(ignored('clients read the state again when they connect')),
  )
  return {
    ...memberCalls(host, published, drivers),
    ...ticketCalls(host, hasBundle),
    'GET /system/sign-in': (_input, context) => {
      // A call from another group has no HTTP request.
      const { http } = context
      // Otherwise one local program could use up the budget of all others.
      if (http && !http.local) asked.spend(http.address)
      return signIn.options(http)
    },
    'POST /system/session': async (input, context) => {
      const { session, did } = await signIn.open(input, context)
      await published('sessions')
      if (did) await published('members')
      if (!session.renewed) await recordSignIn(host, session, did)
      return session
    },
    'GET /system/sessions': (_input, { caller }) => listSessions(host, caller),
    'POST /system/sessions/revoke': (input, context) => revokeSessions(host, input, context),
    'POST /system/control/tokens': async (input, context) => {
      const minted = await mintToken(host, input, context)
      await drivers.any()
      await published('sessions')
      return minted
    },
    'identity.verify': given => signIn.visitor(given),
    'GET /system/control/tokens': () => host.call('kernel.token.list'),
    'DELETE /system/control/tokens/{id}': async ({ id }, context) => {
      await host.call('kernel.token.revoke', { id })
      await record(host, { type: 'token.revoked', extra: { id } }, context)
      return { ok: true }
    },
  }
}

const DID = { claimed: 'owner.claimed', joined: 'member.joined' } as const

/** Recorded for the person who signed in: the caller had no identity before. */
const recordSignIn = async (host: Host, { email, id, role }: OpenedSession, did?: keyof typeof DID): Promise<void> => {
  if (did) await record(host, { type: DID[did], actor: email, extra: { role } })
  await record(host, { type: 'session.opened', actor: email, extra: { id } })
}
