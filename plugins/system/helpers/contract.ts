import type { tags } from 'typia'
import type { Millis, Positive, Text } from '../../../sdk/types.js'
import type { ConversationId, HelperSession, TranscriptMessage } from '../../agent/contract.js'

/** Helpers that agents started. */
export interface HelperCalls {
  /**
   * List the helper agents that conversations started, newest first.
   *
   * Live ones and those that ended within 7 days. `before` pages by `startedAt`: `next` of the answer begins the page
   * after it.
   */
  'GET /system/subagents'(input: {
    conversationId?: ConversationId
    status?: 'live' | 'all'
    limit?: Positive & tags.Default<100>
    before?: Millis
  }): { sessions: HelperSession[]; next?: Millis }

  /**
   * Read what one helper was asked, did and said.
   *
   * Live from its turn while that works, from what was kept afterwards. An `editor` token reads only helpers of
   * conversations it started.
   *
   * - 404: no such subagent, or it ended more than a week ago
   */
  'GET /system/subagents/{id}/transcript'(input: { id: Text }): { messages: TranscriptMessage[] }
}
