import type { Api } from '../../../api.js'
import type { Context, Handlers } from '../../../contract.js'
import type { Host } from '../../../host.js'
import { refuse } from '../../../refusal.js'
import { usesConnection } from './turn-connections.js'

/** What a turn asks of the machine's network. */
type NetworkAsked = Parameters<Handlers<Api>['networks.admit']>[0]

/**
 * Refuses what a turn asks for with its own credential unless the people behind it and the safety policy allow it;
 * every other caller is let through. `id` names the connection that it is about.
 */
export const assertTurnMay = async (
  host: Pick<Host, 'call'>,
  { caller }: Pick<Context, 'caller'>,
  asked: Pick<NetworkAsked, 'type' | 'text'>,
  id?: string,
): Promise<void> => {
  const { kind, conversationId } = caller
  if (kind !== 'turn') return
  if (conversationId === undefined) return refuse('forbidden', 'expected the turn of a conversation, found none')
  if (id !== undefined && !usesConnection(caller, id))
    refuse('not-found', `there is no ${id} among the connections of this turn's persona`)
  await host.call('networks.admit', { conversationId, ...asked })
}
