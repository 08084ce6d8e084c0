import { type Caller, type Context, type HttpFacts, refuse } from '../../sdk/index.js'
import type { Me } from './contract.js'

/** The facts of a request, for calls that only make sense as one. */
export const httpRequestOf = ({ http }: Context): HttpFacts =>
  http ?? refuse('unprocessable', 'expected a request over HTTP, found a call of another group')

/** The caller, as the answer describes them. */
export const meOf = ({ actor, kind, role, scope, areas, sessionId, name, picture }: Caller): Me => ({
  actor,
  kind,
  role,
  ...(scope && { scope }),
  ...(areas && { areas: [...areas] }),
  ...(sessionId && { sessionId }),
  ...(name && { name }),
  ...(picture && { picture }),
})
