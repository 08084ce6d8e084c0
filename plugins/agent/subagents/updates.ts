import type { Host } from '../../../sdk/index.js'
import { placesOfConversation } from '../../../sdk/node/access/conversation-reach.js'
import { WorkspacePaths } from '../../../sdk/node/files/workspace-paths.js'
import { Changes } from '../conversations/changes.js'
import type { Conversation } from '../contract.js'

/** Publishes each changed subagent, for those who see the folders of its conversation. */
export const subagentUpdates = (
  host: Pick<Host, 'call' | 'log' | 'place' | 'signal'>,
  conversations: () => readonly Conversation[],
): Changes =>
  new Changes(key => {
    const conversation = conversations().find(({ lastRun }) => lastRun !== undefined && key.startsWith(`${lastRun}:`))
    const at = conversation
      ? placesOfConversation(new WorkspacePaths(host.place.workspace), conversation)
      : Promise.resolve(undefined)
    at.then(within =>
      host.call('kernel.events.publish', { domain: 'subagents', key, ...(within && { within }) }),
    ).catch(
      error => host.signal.aborted || host.log.warn('publishing a subagent update failed', { error: String(error) }),
    )
  })
