import type { tags } from 'typia'
import type { Count, MostCharacters, Ok, Text } from '../../../sdk/types.js'
import type { Matches } from '../conversations/contract.js'
import type { TranscriptPage } from '../conversations/record.js'
import type { ConversationId } from '../turn/frames/frames.js'
import type { AgentCard, Roster } from './card.js'

/** A failure for one of several conversations. */
export interface Failure {
  id: ConversationId
  message: string
}
/** Changed conversations, as they are now. */
export interface Moved {
  moved: AgentCard[]
  rev: Count
}
/** Archived conversations, and failures. */
export interface Archived extends Moved {
  failed?: Failure[]
}
/** Ids of conversations, at most 500. */
export type Ids = Text[] & tags.MaxItems<500>

/** Conversations without their turns: find, read, mark, archive. */
export interface BoardCalls {
  /**
   * Find conversations, live and archived, by their title or messages.
   *
   * A match in the title has no snippet; otherwise the snippet is the oldest matching line, preferably the person's.
   * Text of running turns is included. `indexing` says that the index is still being built and the answer can grow.
   */
  'GET /agents/search'(input: {
    query: string & tags.MinLength<2> & tags.MaxLength<200>
    caseSensitive?: boolean
  }): Matches

  /**
   * Read the record in order, including tool calls and answers.
   *
   * Without `limit` the whole record, with it the last rows before index `before`. A running turn is not in it yet:
   * follow it with `POST /agent/attach`. An `editor` token reads only conversations it opened.
   *
   * - 403: an editor token reads only conversations it opened
   * - 404: no such conversation
   */
  'GET /agents/{id}/transcript'(input: {
    id: Text
    limit?: number & tags.Type<'uint32'> & tags.Minimum<1>
    before?: Count
  }): TranscriptPage

  /**
   * Add a line to the record as the agent's, without a turn.
   *
   * It is marked for people. The provider's session is cleared, so that the model reads the line as its own in the next
   * turn.
   *
   * - 404: no such conversation
   * - 409: a turn is running or parked
   */
  'POST /agents/{id}/place'(input: { id: Text; text: string & tags.MinLength<1> & tags.MaxLength<8000> }): Ok

  /**
   * Set the title; no generated title replaces it.
   *
   * - 400: the title is blank
   * - 404: no such conversation
   */
  'POST /agents/{id}/rename'(input: { id: Text; title: string & tags.MinLength<1> & MostCharacters<80> }): AgentCard

  /**
   * Choose whether this conversation's work lands automatically after a completed turn; null follows the rules again.
   *
   * It is read when a turn ends, so it applies to a running turn too. Work does not land automatically if a message
   * came from somebody who may not land, or from outside.
   *
   * - 404: no such conversation
   * - 422: the conversation works in the shared tree
   */
  'POST /agents/{id}/auto-land'(input: { id: Text; autoLand: boolean | null }): AgentCard

  /**
   * Choose whether turns of this conversation resume after an outage of their provider; null follows the setting.
   *
   * Turning it on resumes a turn that an outage ended within the last 60 minutes.
   *
   * - 404: no such conversation
   */
  'POST /agents/{id}/resume-after-outage'(input: { id: Text; resumeAfterOutage: boolean | null }): AgentCard

  /**
   * Mark a conversation as read.
   *
   * - 404: no such conversation
   */
  'POST /agents/{id}/seen'(input: { id: Text }): AgentCard

  /**
   * Mark many conversations as read, without `ids` all; nothing changes if one is unknown.
   *
   * - 404: an id is unknown; nothing was marked
   */
  'POST /agents/seen'(input: { ids?: Ids }): Roster

  /**
   * Request a landing: mark the conversation as waiting for somebody who may land.
   *
   * The next landing or discard removes the mark. A second request keeps the first time and person.
   *
   * - 404: no such conversation
   * - 409: nothing is outstanding
   * - 422: the conversation works in the shared tree
   * - 424: the work could not be committed to its branch; the message says why
   */
  'POST /agents/{id}/request-land'(input: { id: Text }): AgentCard

  /**
   * Archive conversations: uncommitted work is committed, the private copy removed, the branch hidden, the record kept.
   *
   * Without `ids` every finished one. One that fails stays on the board. Finished ones are archived automatically after
   * `agentRetentionDays` of the settings.
   *
   * - 404: an id is unknown; nothing changed
   * - 409: a turn of a named conversation is running or parked; nothing changed
   */
  'POST /agents/archive'(input: { ids?: Ids }): Archived

  /**
   * Restore conversations from the archive, as the newest activity; the next turn rebuilds the private copy.
   *
   * - 404: an id is unknown; nothing changed
   */
  'POST /agents/unarchive'(input: { ids: Ids & tags.MinItems<1> }): Moved

  /**
   * Delete archived conversations for good: branches, transcripts, queues, and attachments that no other one refers to.
   *
   * Without `ids` the whole archive. One that fails stays in the archive.
   *
   * - 404: an id is unknown; nothing was removed
   * - 409: a conversation is not archived; nothing was removed
   */
  'POST /agents/purge'(input: { ids?: Ids }): { removed: ConversationId[]; failed?: Failure[] }

  /** Archives a conversation: commits what its copy holds, removes the copy, hides the branch. */
  'agent.archive'(input: { id: string }): Ok
}
