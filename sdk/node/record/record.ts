import type { Api } from '../../api.js'
import type { Context, Input } from '../../contract.js'
import type { Host } from '../../host.js'
import { Refusal } from '../../refusal.js'

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
    const told = { direction: 'system', audience: 'maintainer', ...happened } as const
    if (context) await asCaller(host, told, context)
    else await host.call('activity.record', told)
  } catch (error) {
    host.log.error('recording an action failed', { type: happened.type, error: String(error) })
  }
}

const asCaller = async (host: Pick<Host, 'call' | 'log'>, told: Told, context: Context): Promise<void> => {
  try {
    await host.call('activity.record', told, { as: context })
  } catch (error) {
    if (!(error instanceof Refusal && error.reason === 'forbidden')) throw error
    // The kernel accepts only contexts of calls in progress: for a copy, the entry names the actor instead.
    await host.call('activity.record', { actor: context.caller.actor, ...told })
  }
}
