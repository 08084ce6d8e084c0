import type { Host } from '../../host.js'
import type { Reach, ReachFolder } from '../../reach.js'
import type { Caller } from '../../types.js'
import { limitsOf, accessViewWith, type AccessView } from './access-view.js'

/**
 * What areas reach together now, with `email` those that this person still holds; without group areas nothing is inside
 * of any.
 */
export const askReach = async (
  host: Pick<Host, 'call' | 'serves'>,
  areas: readonly string[],
  email?: string,
): Promise<readonly ReachFolder[]> => {
  if (!(await host.serves('areas.reach'))) return []
  return (await host.call('areas.reach', { areas: [...areas], ...(email !== undefined && { email }) })).folders
}

/** How far a caller reaches now. Only one limited to areas costs a question. */
export const reachFor = async (host: Pick<Host, 'call' | 'serves'>, caller: Caller): Promise<Reach> => {
  const areas = limitsOf(caller)
  return areas && askReach(host, areas)
}

/** What a caller sees now. */
export const accessViewFor = async (
  host: Pick<Host, 'call' | 'serves' | 'place'>,
  caller: Caller,
): Promise<AccessView> => accessViewWith(host.place.workspace, await reachFor(host, caller))
