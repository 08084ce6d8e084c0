import type { tags } from 'typia'
import type { Count, Ok, Text } from '../../../sdk/types.js'
import type { Matches } from '../conversations/contract.js'
import type { TranscriptPage } from '../conversations/record.js'
import type { ConversationId } from '../turn/frames/frames.js'
import type { AgentCard, Roster } from './card.js'

/** What could not be done to one of several conversations. */
export interface Failure {
  id: ConversationId
  message: string
}
/** Conversations that were moved, as they are now. */
export interface Moved {
  moved: AgentCard[]
  rev: Count
}
/** Conversations that were put away, and those that were not. */
export interface Archived extends Moved {
  failed?: Failure[]
}
/** Ids of conversations, at most 500. */
export type Ids = Text[] & tags.MaxItems<500>

/** What people do with conversations beside running turns: find, read, mark, archive. */
export interface BoardCalls {
  /**
   * Find conversations, live and archived, by title or by anything either side said.
   *
   * A title that fits has no snippet; the person's own oldest line wins otherwise. What a running turn says is found at
   * once. `indexing` says that the index is still being built and the answer can grow.
   */
  'GET /agents/search'(input: {
    query: string & tags.MinLength<2> & tags.MaxLength<200>
    caseSensitive?: boolean
  }): Matches

  /**
   * Give the record in order, tools and answers included.
   *
   * Without `limit` the whole record, with it the last rows before index `before`. A live run is not in it yet: attach
   * shows it. An `editor` token reads only conversations it opened.
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
   * Add a line to the record in the agent's voice, with no turn behind it.
   *
   * People see it marked. The provider's memory is cleared, so that the next turn reads the line as its own words.
   *
   * - 404: no such conversation
   * - 409: a turn is running or parked
   */
  'POST /agents/{id}/place'(input: { id: Text; text: string & tags.MinLength<1> & tags.MaxLength<8000> }): Ok

  /**
   * Set the title a person chose; no generated title replaces it.
   *
   * - 400: the title is blank
   * - 404: no such conversation
   */
  'POST /agents/{id}/rename'(input: { id: Text; title: string & tags.MinLength<1> & tags.MaxLength<80> }): AgentCard

  /**
   * Choose whether this conversation's work lands by itself after a clean turn; null follows the rules again.
   *
   * It is read when a turn ends, so it counts for the one now running. Words of somebody who may not land, and a wake
   * from outside, leave the work to a person.
   *
   * - 404: no such conversation
   * - 422: the conversation works in the shared tree
   */
  'POST /agents/{id}/auto-land'(input: { id: Text; autoLand: boolean | null }): AgentCard

  /**
   * Choose whether turns of this conversation are run again after an outage of their provider; null follows the
   * setting.
   *
   * Turning it on picks up a turn that died of an outage within the last 60 minutes.
   *
   * - 404: no such conversation
   */
  'POST /agents/{id}/resume-after-outage'(input: { id: Text; resumeAfterOutage: boolean | null }): AgentCard

  /**
   * Stamp the read mark of a conversation.
   *
   * - 404: no such conversation
   */
  'POST /agents/{id}/seen'(input: { id: Text }): AgentCard

  /**
   * Stamp many read marks at once, all of them without `ids`; one that is unknown refuses all.
   *
   * - 404: an id is unknown; nothing was stamped
   */
  'POST /agents/seen'(input: { ids?: Ids }): Roster

  /**
   * Mark the conversation as waiting for somebody who may land, with who asked.
   *
   * The landing or discard that answers it takes the mark away. Asking again keeps the first time.
   *
   * - 404: no such conversation
   * - 409: nothing is outstanding
   * - 422: the conversation works in the shared tree
   * - 424: the work could not be put on its branch, and why
   */
  'POST /agents/{id}/request-land'(input: { id: Text }): AgentCard

  /**
   * Put conversations away: the rest is committed, the private copy goes, the branch is parked, the record is kept.
   *
   * Without `ids` every finished one. One that fails stays on the board. Finished ones go by themselves after the days
   * that the settings name (`agentRetentionDays`).
   *
   * - 404: an id is unknown; nothing moved
   * - 409: a turn of a named conversation is running or parked; nothing moved
   */
  'POST /agents/archive'(input: { ids?: Ids }): Archived

  /**
   * Bring conversations back from the archive, as the newest activity; the private copy is rebuilt by the next turn.
   *
   * - 404: an id is unknown; nothing moved
   */
  'POST /agents/unarchive'(input: { ids: Ids & tags.MinItems<1> }): Moved

  /**
   * Delete archived conversations for good: branches, transcripts and what waits.
   *
   * Without `ids` the whole archive. One that fails stays in the archive.
   *
   * - 404: an id is unknown; nothing was removed
   * - 409: a conversation is not archived; nothing was removed
   */
  'POST /agents/purge'(input: { ids?: Ids }): { removed: ConversationId[]; failed?: Failure[] }

  /** Archives a conversation: what its copy holds is committed, the checkout goes, the branch is parked. */
  'agent.archive'(input: { id: string }): Ok
}
