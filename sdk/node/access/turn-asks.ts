import { refuse } from '../../refusal.js'
import type { Context } from '../../contract.js'
import type { Host } from '../../host.js'
import type { Caller } from '../../types.js'

/** What a turn may ask of the machine with its own credential. */
export type TurnAction = 'vpn' | 'disks' | 'exit'

/** Whether a caller may use a connection: a turn only those of its persona. */
export const usesConnection = ({ turn }: Pick<Caller, 'turn'>, id: string): boolean =>
  turn?.capabilities?.includes(id) ?? true

/**
 * Refuses what a turn asks for with its own credential unless the people behind it and the safety policy allow it;
 * every other caller is let through. `id` names the connection that it is about.
 */
export const assertTurnMay = async (
  host: Pick<Host, 'call'>,
  { caller }: Pick<Context, 'caller'>,
  type: TurnAction,
  text: string,
  id?: string,
): Promise<void> => {
  const { kind, conversationId } = caller
  if (kind !== 'turn') return
  if (conversationId === undefined) return refuse('forbidden', 'expected the turn of a conversation, found none')
  if (id !== undefined && !usesConnection(caller, id))
    refuse('not-found', `there is no ${id} among the connections of this turn's persona`)
  await host.call('networks.admit', { conversationId, type, text })
}
