import type { Host } from '../../host.js'
import type { Reach, ReachFolder } from '../../reach.js'
import type { Caller } from '../../types.js'
import { limitsOf, accessViewWith, type AccessView } from './access-view.js'

/**
 * The folders that areas reach together now; with `email` only those that this person still holds. Empty without group
 * areas.
 */
export const askReach = async (
  host: Pick<Host, 'call' | 'serves'>,
  areas: readonly string[],
  email?: string,
): Promise<readonly ReachFolder[]> => {
  if (!(await host.serves('areas.reach'))) return []
  return (await host.call('areas.reach', { areas: [...areas], ...(email !== undefined && { email }) })).folders
}

/** The current reach of a caller; makes a call only for callers limited to areas. */
export const reachFor = async (host: Pick<Host, 'call' | 'serves'>, caller: Caller): Promise<Reach> => {
  const areas = limitsOf(caller)
  return areas && askReach(host, areas)
}

/** The current access view of a caller. */
export const accessViewFor = async (
  host: Pick<Host, 'call' | 'serves' | 'place'>,
  caller: Caller,
): Promise<AccessView> => ({
  ...accessViewWith(host.place.workspace, await reachFor(host, caller)),
  isToken: caller.kind === 'token',
})
