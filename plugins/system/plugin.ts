import type { Caller, Host } from '../../sdk/index.js'
import { mintToken, revokeSessions } from './access.js'
import { Budget } from './budget.js'
import { type Me, system } from './contract.js'
import { Programs } from './programs.js'
import { openSession, requestOf, signInOptions } from './sign-in.js'

export const contract = system

export const activate = async (host: Host): Promise<void> => {
  const programs = new Programs(host)
  const asked = new Budget(120)
  host.boot('look for programs', () => programs.look())

  await host.serve(system, {
    'GET /info': async (_input, context) => {
      const { base } = requestOf(context)
      const known = await host.call('kernel.info')
      return { ...known, contract: '1', programs: programs.known, base, me: meOf(context.caller) }
    },
    'GET /system/sign-in': (_input, context) => {
      const http = requestOf(context)
      asked.spend(http.address)
      return signInOptions(host, http)
    },
    'POST /system/session': (input, context) => openSession(host, input, context),
    'POST /system/sessions/revoke': (input, context) => revokeSessions(host, input, context),
    'POST /system/control/tokens': (input, context) => mintToken(host, input, context),
    'GET /system/control/tokens': () => host.call('kernel.token.list'),
    'DELETE /system/control/tokens/{id}': ({ id }) => host.call('kernel.token.revoke', { id }),
  })
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
