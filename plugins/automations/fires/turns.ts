import { Refusal, type Host } from '../../../sdk/index.js'
import type { MessageFate, Started } from '../../agent/contract.js'
import type { Automation } from '../contract.js'
import { messageWith } from './envelope.js'
import { choiceOf, type Fire } from './fire.js'

/** The turns of the agent, as fires need them. */
export interface Turns {
  start(automation: Automation, fire: Fire): Promise<Started>
  fate(messageId: string): Promise<MessageFate>
  /** Whether there is a conversation of this id. */
  exists(conversationId: string): Promise<boolean>
  /** Whether a turn runs in the shared tree. */
  sharedBusy(): Promise<boolean>
}

/** The turns of group agent. */
export const agentTurns = (host: Pick<Host, 'call'>): Turns => ({
  start: (automation, { conversationId, run, messageId, payload, foreign, origin, title, approved }) =>
    host.call('agent.start', {
      ...choiceOf(automation),
      ...{ conversationId, run, messageId, unattended: true },
      prompt: messageWith(automation.prompt, payload, foreign),
      title: title ?? automation.id,
      ...(origin && { origin, isolated: true }),
      ...(foreign !== undefined && { outsideWake: foreign }),
      ...(approved && { approved: true }),
    }),
  fate: messageId => host.call('agent.fate', { messageId }),
  exists: id =>
    host.call('agent.conversation', { id }).then(
      () => true,
      (error: unknown) => {
        if (Refusal.from(error).reason === 'not-found') return false
        throw error
      },
    ),
  sharedBusy: async () => {
    const { conversations } = await host.call('agent.conversations')
    return conversations.some(({ conversation, live }) => live !== undefined && conversation.branch === undefined)
  },
})
