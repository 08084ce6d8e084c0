import type { Api } from '../../api.js'
import type { Context, Input } from '../../contract.js'
import type { Host } from '../../host.js'

type Told = Input<Api, 'activity.record'>

/** An entry for the activity record; only maintainers read it unless it allows viewers. */
export type Happened = Pick<Told, 'type'> & Partial<Told>

/**
 * Records an action of the context's caller, or of the named actor.
 *
 * The action is already done, so a failed write is only logged.
 */
export const record = async (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  happened: Happened,
  context?: Context,
): Promise<void> => {
  try {
    if (!(await host.serves('activity.record'))) return
    await host.call(
      'activity.record',
      { direction: 'system', audience: 'maintainer', ...happened },
      context ? { as: context } : {},
    )
  } catch (error) {
    host.log.error('recording an action failed', { type: happened.type, error: String(error) })
  }
}
