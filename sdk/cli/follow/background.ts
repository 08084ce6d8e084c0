import type { Client } from '../../client.js'
import { Refusal } from '../../refusal.js'
import { SELF } from '../terminal/own-name.js'
import { counted, quoted } from '../terminal/text.js'

/** The line that says what goes on in the background of a conversation. */
export const backgroundLine = (conversation: string, running: number): string => {
  const id = quoted(conversation)
  const [goes, them] = running === 1 ? ['goes', 'it'] : ['go', 'them']
  return (
    `${counted(running, 'command')} ${goes} on in the background: ${SELF} agent processes ${id} shows ${them}, `
    + `${SELF} stop ${id} --background ends ${them}`
  )
}

/** The same line at the end of a turn; undefined: nothing goes on. */
export const leftInBackground = async (
  client: Client,
  conversationId: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  // The turn is over, whatever becomes of this question.
  const found = await client.call('GET /agent/processes', { conversationId }, { signal }).catch((error: unknown) => {
    if (signal.aborted || !(error instanceof Refusal)) throw error
    return undefined
  })
  const running = (found?.processes ?? []).filter(one => one.running).length
  return running > 0 ? backgroundLine(conversationId, running) : undefined
}
