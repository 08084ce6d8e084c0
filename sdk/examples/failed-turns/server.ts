// Listens to the conversations of the sandbox, and asks a person what to do after each turn that failed. The answer
// starts the next turn.
import type { ExtensionHost } from 'sandbox-daemon/sdk'

/** What of the event `agent` is read here. */
interface ConversationChanged {
  agent?: { id: string; title?: string; failure?: string }
}

const shown = (text: string, most: number): string => text.replace(/\s+/g, ' ').trim().slice(0, most)

export const activate = (host: ExtensionHost): void => {
  const asked = async ({ agent }: ConversationChanged): Promise<void> => {
    if (!agent) return
    const { id, title = id, failure } = agent
    if (!failure) return void (await host.storage.delete(`asked/${id}`))
    // The same failure is sent again with every later change of the conversation.
    if ((await host.storage.get(`asked/${id}`)) !== undefined) return
    await host.call('POST /needs', {
      conversationId: id,
      kind: 'decision',
      title: `What now: ${shown(title, 100)}`,
      why: `The last turn failed: ${shown(failure, 2000)}. The agent goes on with the answer.`,
      // Two changes at once raise one need.
      dedupe: 'failed-turns',
    })
    await host.storage.set(`asked/${id}`, true)
  }
  host.events.on('agent', event => {
    asked(event as ConversationChanged).catch(error =>
      host.log.warn('nobody could be asked about a failure', { error: String(error) }),
    )
  })
}
