// Listens to the conversations of the sandbox, and asks a person what to do after each turn that failed: whoever
// answers lets the conversation go on.
import type { ExtensionHost } from '../../extension.js'

/** What of the event `agent` is read here. */
interface ConversationChanged {
  agent?: { id: string; title?: string; failure?: string }
}

const shown = (text: string, most: number): string => text.replace(/\s+/g, ' ').trim().slice(0, most)

export const activate = (host: ExtensionHost): void => {
  const asked = async ({ agent }: ConversationChanged): Promise<void> => {
    if (!agent?.failure) return
    const { id, title = id, failure } = agent
    await host.call('POST /needs', {
      conversationId: id,
      kind: 'decision',
      title: `What now: ${shown(title, 100)}`,
      why: `The last turn failed: ${shown(failure, 2000)}. The agent goes on with the answer.`,
      // The same failure is sent again with every later change of the conversation: one need is open for it.
      dedupe: 'failed-turns',
    })
  }
  host.events.on('agent', event => {
    asked(event as ConversationChanged).catch(error =>
      host.log.warn('nobody could be asked about a failure', { error: String(error) }),
    )
  })
}
