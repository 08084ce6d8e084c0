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

/** Whether a route belongs to the trust surface, which no extension reaches whatever its manifest says. */
export const isTrustSurface = (call: string): boolean => CLOSED.some(rule => rule.test(call))

/** Whether an extension could be given a route: not of the trust surface, open, or the owner's. */
export const isReachable = ({ call, role }: GroupRoute): boolean =>
  role !== undefined && role !== 'owner' && !isTrustSurface(call)

/** Whether an entry with a wildcard reaches a route: a maintainer's route must be named. */
export const isWildReachable = (route: GroupRoute): boolean => isReachable(route) && route.role !== 'maintainer'
