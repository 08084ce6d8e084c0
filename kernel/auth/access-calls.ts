import type { Handlers } from '../../sdk/contract.js'
import type { Kernel, ServedRoute } from '../../sdk/kernel.js'
import { Refusal } from '../../sdk/refusal.js'
import type { Group } from '../group.js'
import type { CallAccess } from '../manifest.js'
import { admit } from './admit.js'

type AccessCalls = Pick<Handlers<Kernel>, 'kernel.access.admits' | 'kernel.groups'>

/** Who may use a route, for others. */
export const servedRoute = (access: CallAccess): ServedRoute => {
  if ('open' in access) return { id: access.id }
  const { id, role, tokens, only, turns } = access
  return { id, role, tokens, ...(only && { only }), ...(turns && { turns }) }
}

/** Serves `kernel.access.admits`, whether the caller may use a route of these groups, and `kernel.groups`. */
export const kernelAccessCalls = (groups: () => readonly Group[]): AccessCalls => ({
  'kernel.access.admits': ({ call }, { caller }) => {
    const access = groups()
      .map(({ manifest }) => manifest.routes[call])
      .find(found => found !== undefined)
    if (!access) return { admits: false, message: `nothing serves ${call} here` }
    if ('open' in access) return { admits: true }
    try {
      admit(caller, access)
      return { admits: true }
    } catch (error) {
      return { admits: false, message: Refusal.from(error).message }
    }
  },
  'kernel.groups': () => ({
    groups: groups().map(({ manifest: { name, version, permissions, routes } }) => ({
      ...{ name, version, calls: [...permissions.daemon, ...permissions.late] },
      routes: Object.entries(routes).map(([call, access]) => ({ call, ...servedRoute(access) })),
    })),
  }),
})
