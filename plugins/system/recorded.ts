import type { Context, Host } from '../../sdk/index.js'
import type { ActivityInput } from '../activity/contract.js'

/** What the record says of something that happened here; left out, it is for maintainers, as all is that concerns access. */
export type Happened = Pick<ActivityInput, 'type'> & Partial<ActivityInput>

/**
 * Writes down what happened, with whom it is served for, or by the actor named.
 *
 * It has happened when this is asked: a record that cannot be written is told to the log and undoes nothing.
 */
export const record = async (host: Pick<Host, 'call' | 'serves' | 'log'>, happened: Happened, context?: Context): Promise<void> => {
  try {
    if (!(await host.serves('activity.record'))) return
    await host.call('activity.record', { direction: 'system', audience: 'maintainer', ...happened }, context ? { as: context } : {})
  } catch (error) {
    host.log.error('the record of activity could not be written', { type: happened.type, error: String(error) })
  }
}
