import type { GroupRoute } from '../../../sdk/kernel.js'

const WRITES = 'POST|PUT|PATCH|DELETE'
const ALL = `GET|${WRITES}`

/** Routes that no extension reaches, by method and path. */
const CLOSED: readonly RegExp[] = [
  [ALL, '/secrets(/.*)?'],
  [ALL, '/members(/.*)?'],
  [ALL, '/bundles(/.*)?'],
  [ALL, '/logs(/.*)?'],
  [ALL, '/accounts(/.*)?'],
  [ALL, '/translator/.+'],
  [ALL, '/system/(session|sessions|control|terminal|terminals|ws-ticket|sign-in|presence|browser-view)(/.*)?'],
  // Installing, approving, removing, switching, updating and re-pointing; only counts of use may be reported.
  [WRITES, '/extensions/(?!usage$).*'],
  [WRITES, '/shield(/(?!preview$|restore$).*)?'],
  [WRITES, '/safety(/(?!test$).*)?'],
  [WRITES, '/settings(/patch)?'],
  [WRITES, '/areas(/.*)?'],
  [WRITES, '/capabilities(/.*)?'],
  [WRITES, '/endpoints(/.*)?'],
  ['GET', '/capabilities'],
  ['GET', '/capabilities/[^/]+/(status|tools)'],
  ['GET', '/cli/apply/events'],
  [WRITES, '/cli(/.*)?'],
  ['POST', '/automations'],
  ['POST', '/drafts'],
  [ALL, '/[^/]+/(login|account|accounts)(/.*)?'],
].map(([methods, path]) => new RegExp(`^(${methods}) ${path}$`))

/** Whether a route belongs to the trust surface, which no extension reaches with any manifest. */
export const isTrustSurface = (call: string): boolean => CLOSED.some(rule => rule.test(call))

/** Groups whose calls without token scopes are out of reach. */
const CLOSED_GROUPS = new Set(['accounts', 'routed', 'secrets', 'capabilities', 'endpoints', 'logs', 'exports', 'cli'])

/** Calls about who may do what, by operation id. */
const CLOSED_CALLS = new RegExp(
  '^system[.](?:session|sessions|revokeSessions|mintToken|tokens|revokeToken|members|grant|removeMember|leave|invite'
    + '|revokeInvite|ticket|presence|terminals|openTerminal|killTerminal|terminalScrollback|browserPage|closeBrowser'
    + '|bundles|export|removeBundle|restore)$'
    + '|^workspace[.](?:mediaTicket|downloadTicket)$|^activity[.]export$|^automations[.](?:create|save)$'
    + '|^extensions[.](?!list$|readiness$|processStatus$|settings$|removal$)',
)

/** Calls that show what people and agents wrote. */
const TRANSCRIPTS = new Set([
  'agents.transcript',
  'agents.search',
  'agent.attach',
  'agent.cards',
  'sessions.list',
  'sessions.get',
  'system.subagentTranscript',
])

/** Whether a served route is in the trust surface, by its path, its id or its group. */
export const isClosedRoute = ({ call, id, tokens = [], only }: GroupRoute): boolean =>
  isTrustSurface(call)
  || CLOSED_CALLS.test(id)
  || (CLOSED_GROUPS.has(id.split('.', 1)[0]!) && tokens.length === 0 && only === undefined)

/** Whether an extension could be given a route: not of the trust surface, open, or the owner's. */
export const isReachable = (route: GroupRoute): boolean =>
  route.role !== undefined && route.role !== 'owner' && !isClosedRoute(route)

/** Whether a route needs the entry `conversation:read` besides its own. */
export const showsTranscripts = ({ id }: Pick<GroupRoute, 'id'>): boolean => TRANSCRIPTS.has(id)

/** Whether an entry with a wildcard reaches a route: a maintainer's route must be named. */
export const isWildReachable = (route: GroupRoute): boolean => isReachable(route) && route.role !== 'maintainer'
