import type { Host } from '../../../sdk/index.js'
import { accessViewWith } from '../../../sdk/node/access/access-view.js'
import type { Repositories } from '../repositories/repositories.js'

/** Notifies watchers of the current repositories if these differ from those of the last time. */
export const reposChanged = async (
  host: Pick<Host, 'call' | 'log' | 'place'>,
  repositories: Repositories,
): Promise<void> => {
  const repos = await repositories.ids(accessViewWith(host.place.workspace, undefined))
  if (!repositories.differ(repos)) return
  const data = { kind: 'reposChanged', repos }
  await host
    .call('kernel.events.show', { frames: [{ data }] })
    .catch(error => host.log.warn('telling that repositories changed failed', { error: String(error) }))
}
