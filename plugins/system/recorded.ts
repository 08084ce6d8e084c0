import type { Context, Host } from '../../sdk/index.js'

/** What the record says of something that happened here. */
export interface Happened {
  readonly type: string
  readonly extra?: { readonly [key: string]: unknown }
  /** Who did it, where that is not the caller of the call being answered. */
  readonly actor?: string
  /** Left out: for maintainers, as all is that concerns access. */
  readonly audience?: 'viewer' | 'maintainer'
  readonly conversationId?: string
}

/**
 * Writes down what happened, with whom it is served for, or by the actor named.
 *
 * It has happened when this is asked: a record that cannot be written is told to the log and undoes nothing.
 */
export const record = async (host: Pick<Host, 'call' | 'serves' | 'log'>, { type, extra, actor, audience = 'maintainer', conversationId }: Happened, context?: Context): Promise<void> => {
  try {
    if (!(await host.serves('activity.record'))) return
    const entry = {
      type, direction: 'system', audience, ...(extra && { extra: { ...extra } }),
      ...(actor !== undefined && { actor }), ...(conversationId !== undefined && { conversationId }),
    } as const
    await host.call('activity.record', entry, context ? { as: context } : {})
  } catch (error) {
    host.log.error('the record of activity could not be written', { type, error: String(error) })
  }
}
