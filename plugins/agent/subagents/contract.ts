import type { Millis, Positive } from '../../../sdk/types.js'
import type { TranscriptMessage } from '../conversations/record.js'
import type { ConversationId } from '../turn/frames/frames.js'
import type { SubagentSession } from './session.js'

/** Agents that a turn started. */
export interface SubagentCalls {
  /** Subagents of running turns, and of turns of the last week, newest first; `before` pages by `startedAt`. */
  'agent.helpers'(input: { conversationId?: string; status?: 'live' | 'all'; limit?: Positive; before?: Millis }): {
    sessions: SubagentSession[]
    next?: Millis
  }

  /** One subagent's record, live while its turn is running. */
  'agent.helperTranscript'(input: { id: string }): { conversationId: ConversationId; messages: TranscriptMessage[] }
}
