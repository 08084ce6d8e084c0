import type { Api } from '../../api.js'
import type { Input } from '../../contract.js'
import type { Host } from '../../host.js'
import { placesOfConversation, type ConversationPlace } from '../access/conversation-reach.js'
import { WorkspacePaths } from '../files/workspace-paths.js'

/**
 * Tells people on their devices, where group push is served; `conversation` is the one that it is about.
 *
 * What it tells of has happened already, so a failure is only logged.
 */
export const sendPush = async (
  host: Pick<Host, 'call' | 'serves' | 'log' | 'place' | 'signal'>,
  message: Input<Api, 'push.send'>,
  conversation?: ConversationPlace,
): Promise<void> => {
  try {
    if (!(await host.serves('push.send'))) return
    const within = conversation && (await placesOfConversation(new WorkspacePaths(host.place.workspace), conversation))
    await host.call('push.send', { ...message, ...(within && { within }) })
  } catch (error) {
    if (!host.signal.aborted) host.log.warn('notifying people failed', { error: String(error) })
  }
}
