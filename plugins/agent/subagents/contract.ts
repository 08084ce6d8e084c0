import type { Millis, Positive } from '../../../sdk/types.js'
import type { TranscriptMessage } from '../conversations/record.js'
import type { ConversationId } from '../turn/frames/frames.js'
import type { HelperSession } from './session.js'

/** Agents that a turn started. */
export interface SubagentCalls {
  /** Subagents of turns under way, and of turns of the last week, newest first; `before` pages by `startedAt`. */
  'agent.helpers'(input: { conversationId?: string; status?: 'live' | 'all'; limit?: Positive; before?: Millis }): {
    sessions: HelperSession[]
    next?: Millis
  }

  /** One subagent's record, live while its turn is under way. */
  'agent.helperTranscript'(input: { id: string }): { conversationId: ConversationId; messages: TranscriptMessage[] }
}
