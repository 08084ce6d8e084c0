import type { Context, Host } from '../../sdk/index.js'

/** What the record says of an area. */
export interface Happened {
  readonly type: 'area.written' | 'area.granted' | 'area.revoked' | 'area.deleted'
  readonly extra: { readonly [key: string]: unknown }
}

/** Writes down, for maintainers, what happened to areas. It has happened: a record that cannot be written undoes nothing. */
export const record = async (host: Pick<Host, 'call' | 'serves' | 'log'>, happened: readonly Happened[], context: Context): Promise<void> => {
  try {
    if (!(await host.serves('activity.record'))) return
    for (const { type, extra } of happened) {
      await host.call('activity.record', { type, direction: 'system', audience: 'maintainer', extra: { ...extra } }, { as: context })
    }
  } catch (error) {
    host.log.error('the record of activity could not be written', { types: happened.map(({ type }) => type), error: String(error) })
  }
}
