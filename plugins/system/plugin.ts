import type { Caller, Host } from '../../sdk/index.js'
import type { OpenedSession } from '../../sdk/kernel.js'
import { record } from '../../sdk/node/record.js'
import { listSessions, mintToken, revokeSessions } from './access/credentials.js'
import { browserCalls } from './browsers/calls.js'
import { chromiumProgram } from './browsers/chromium.js'
import { Budget } from './access/budget.js'
import { bundleCalls } from './bundles/calls.js'
import { type Me, system } from './contract.js'
import { recordDenials } from './access/denials.js'
import { EventStream } from './stream/events.js'
import { helperCalls } from './helpers/calls.js'
import { machineCalls } from './machine/calls.js'
import { manifestProblemCalls } from './info/manifest-problems.js'
import { memberHandlers } from './access/members.js'
import { Programs } from './info/programs.js'
import { requestOf, SignIn } from './access/sign-in.js'
import { terminals } from './terminals/calls.js'
import { terminalPrograms } from './terminals/programs.js'
import { tickets } from './access/tickets.js'

export const contract = system

export const activate = async (host: Host): Promise<void> => {
  const published = (domain: 'sessions' | 'members') => host.call('kernel.events.publish', { domain })
  const programs = new Programs(host)
  const asked = new Budget(120)
  const denied = recordDenials(host)
  const signIn = new SignIn(host, address => denied(address, 'identity token'))
  const events = new EventStream(host)
  await events.open()
  host.contribute('system.programs', async () => [...await terminalPrograms(), await chromiumProgram()])
  host.boot('look for programs', () => programs.look())
  // Every end of a credential is heard of, its time running out too.
  host.on('credential.ended', () => void published('sessions').catch(() => {}))

  const backups = await bundleCalls(host)

  await host.serve(system, {
    ...browserCalls(host),
    ...memberHandlers(host, published),
    'GET /info': async (_input, context) => {
      const { base } = requestOf(context)
      const known = await host.call('kernel.info')
      return { ...known, contract: '1', programs: programs.known, base, me: meOf(context.caller) }
    },
    'GET /system/sign-in': (_input, context) => {
      const http = requestOf(context)
      asked.spend(http.address)
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
      await published('sessions')
      return minted
    },
    'GET /events': (input, context) => events.watch(input, context, meOf(context.caller)),
    'POST /system/presence': async (input, { caller }) => {
      await events.presence.say(caller, input)
      return { ok: true }
    },
    'GET /system/control/tokens': () => host.call('kernel.token.list'),
    ...terminals(host),
    ...tickets(host, async name => backups.knows(name)),
    'DELETE /system/control/tokens/{id}': async ({ id }, context) => {
      await host.call('kernel.token.revoke', { id })
      await record(host, { type: 'token.revoked', extra: { id } }, context)
      return { ok: true }
    },
    ...backups.calls,
    ...helperCalls(host),
    ...machineCalls(host),
    ...manifestProblemCalls(host),
  })
}

const DID = { claimed: 'owner.claimed', joined: 'member.joined' } as const

/** By the person who was let in: until then the caller was a stranger. */
const recordSignIn = async (host: Host, { email, id, role }: OpenedSession, did?: keyof typeof DID): Promise<void> => {
  if (did) await record(host, { type: DID[did], actor: email, extra: { role } })
  await record(host, { type: 'session.opened', actor: email, extra: { id } })
}

const meOf = ({ actor, kind, role, scope, areas, sessionId, name, picture }: Caller): Me => ({
  actor,
  kind,
  role,
  ...(scope && { scope }),
  ...(areas && { areas: [...areas] }),
  ...(sessionId && { sessionId }),
  ...(name && { name }),
  ...(picture && { picture }),
})
