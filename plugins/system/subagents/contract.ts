import type { tags } from 'typia'
import type { Millis, Positive, Text } from '../../../sdk/types.js'
import type { ConversationId, SubagentSession, TranscriptMessage } from '../../agent/contract.js'

/** Subagents that agents started. */
export interface SubagentSessionCalls {
  /**
   * List the subagents that conversations started, newest first.
   *
   * Running ones and those that ended within 7 days. `before` pages by `startedAt`; pass the answer's `next` for the
   * next page.
   */
  'GET /system/subagents'(input: {
    conversationId?: ConversationId
    status?: 'live' | 'all'
    limit?: Positive & tags.Default<100>
    before?: Millis
  }): { sessions: SubagentSession[]; next?: Millis }

  /**
   * Read the prompt, actions and output of one subagent.
   *
   * While its turn runs it is read from the turn, afterwards from its record. An `editor` token reads only subagents of
   * conversations it started.
   *
   * - 404: no such subagent, or it ended more than a week ago
   */
  'GET /system/subagents/{id}/transcript'(input: { id: Text }): { messages: TranscriptMessage[] }
}
