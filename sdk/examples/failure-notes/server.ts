// Listens to the conversations of the sandbox, and files a line in notes/failures.md for each turn that failed.
import type { ExtensionHost } from '../../node/extension/host.js'

const FILE = 'notes/failures.md'
const HEADING = '# Turns that failed\n\n'

/** What of the event `agent` is read here. */
interface ConversationChanged {
  agent?: { id: string; title?: string; status: string; failure?: string; updatedAt?: number }
}

const shown = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 300)

export const activate = (host: ExtensionHost): void => {
  let last = Promise.resolve()
  const noted = async ({ agent }: ConversationChanged): Promise<void> => {
    if (!agent?.failure) return void (agent && (await host.storage.delete(`failed/${agent.id}`)))
    // The same failure is sent again with every later change of the conversation.
    const { id, title = id, failure } = agent
    if ((await host.storage.get(`failed/${id}`)) === failure) return
    const there = await host.files.stat(FILE)
    const before = there ? new TextDecoder().decode(await host.files.read(FILE)) : HEADING
    const day = new Date().toISOString().slice(0, 10)
    await host.files.write(FILE, `${before}- ${day} ${shown(title)} (${id}): ${shown(failure)}\n`)
    await host.storage.set(`failed/${id}`, failure)
  }
  host.events.on('agent', event => {
    // One after the other: each reads what the one before it wrote.
    last = last
      .then(() => noted(event as ConversationChanged))
      .catch(error => host.log.warn('a failure could not be noted', { error: String(error) }))
  })
  host.onStop(() => last)
}
