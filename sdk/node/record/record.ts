import type { Api } from '../../api.js'
import type { Context, Input } from '../../contract.js'
import type { Host } from '../../host.js'

type Told = Input<Api, 'activity.record'>

/** What the record of activity says of something; for maintainers, unless it says that viewers may read it too. */
export type Happened = Pick<Told, 'type'> & Partial<Told>

/**
 * Writes down what happened, by the caller of a context, or by the actor named.
 *
 * The thing has happened already: a record that cannot be written goes to the log and undoes nothing.
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
    host.log.error('what was done could not be written down', { type: happened.type, error: String(error) })
  }
}
