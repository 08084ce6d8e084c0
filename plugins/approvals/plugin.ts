import type { Contract, Host } from '../../sdk/index.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { placesOfConversation } from '../../sdk/node/access/conversation-reach.js'
import { WorkspacePaths } from '../../sdk/node/files/workspace-paths.js'
import { sendPush } from '../../sdk/node/push/send-push.js'
import { promptWords } from '../../sdk/node/push/words.js'
import { approvalsCalls, liveConversation } from './calls.js'
import { approvalsContract, type ApprovalsCalls } from './contract.js'
import { examples } from './examples.js'
import { executorsNow } from './executors/executors.js'
import { endPosting } from './executors/persona-turn.js'
import { MediaCopies } from './media.js'
import { ApprovalQueue } from './queue.js'
import { itemTitle, type StoredApproval } from './stored-approval.js'

export const contract: Contract<ApprovalsCalls> = { ...approvalsContract, examples }

const SWEEP_MS = 24 * 3_600_000

/** Keeps what agents propose, and carries out what a person has approved, once. */
export const activate = async (host: Host): Promise<void> => {
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  const publish = async ({ id, conversationId }: StoredApproval) => {
    const state = conversationId === undefined ? undefined : await liveConversation(host, conversationId)
    const within = state && (await placesOfConversation(new WorkspacePaths(host.place.workspace), state.conversation))
    for (const domain of ['approvals', 'drafts'])
      await host.call('kernel.events.publish', { domain, key: id, ...(within && { within }) })
  }
  const copies = new MediaCopies(host.place.folder)
  const queue = new ApprovalQueue({
    host,
    find: item => executorsNow(host, copies, true)(item),
    copies,
    say: message => host.call('agent.start', { ...message, unattended: true }),
    halt: conversationId => endPosting(host, conversationId),
    published: item => void publish(item).catch(failed('publishing an approval')),
    filed: item => void sendPush(host, { moment: 'approval', approvalId: item.id, text: promptWords(itemTitle(item)) }),
  })
  await queue.load()

  host.on('daemon.ready', () => void queue.resume().catch(failed('going on with approvals')))
  repeat(host, SWEEP_MS, 'removing old approvals', () => queue.sweep())
  host.stopping(async () => {
    queue.stop()
  })
  await host.serve(approvalsContract, approvalsCalls({ host, queue, copies }))
}
