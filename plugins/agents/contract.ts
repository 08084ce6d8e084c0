import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Text } from '../../sdk/types.js'
import type {
  ConversationId,
  Matches,
  MessageId,
  QueuedMessage,
  RunId,
  TranscriptPage,
  WaitingMessages,
} from '../agent/contract.js'
import type { AgentCard, Roster, Cards } from './roster/contract.js'
import type {
  AgentChanges,
  Conflicts,
  LandChoice,
  LandMode,
  LandOutcome,
  LandPath,
  LandResult,
  Synced,
  TwoSides,
} from './work/contract.js'

export type * from './roster/contract.js'
export type * from './work/contract.js'

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
/** The messages that wait, and the live run. */
export interface ConversationQueue extends WaitingMessages {
  running?: RunId
}
/** The messages that wait in their new order, and the run that the first of them started. */
export interface OrderedQueue extends WaitingMessages {
  run?: RunId
}
/** Ids of conversations, at most 500. */
export type Ids = Text[] & tags.MaxItems<500>

export interface Agents {
  /** List every live conversation, newest activity first, with standings computed now. */
  'GET /agents'(): Roster

  /**
   * List the conversations that were put away, newest first.
   *
   * Without `limit` all of them; with it the newest that were put away before the moment `before`.
   */
  'GET /agents/archived'(input: { limit?: number & tags.Type<'uint32'> & tags.Minimum<1>; before?: Millis }): Roster

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
   * Give one conversation's card, with its standing computed now.
   *
   * - 404: no such conversation
   */
  'GET /agents/{id}'(input: { id: Text }): AgentCard

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
   * Show everything the conversation changed since its branch left main, per repository, landed or not.
   *
   * Uncommitted work of its private copy is included. A repository that cannot be read is left out and logged.
   *
   * - 404: no such conversation
   * - 422: the conversation works in the shared tree
   */
  'GET /agents/{id}/diff'(input: { id: Text }): AgentChanges

  /**
   * Give both sides of one file over the same span as the diff; a missing side means added or deleted.
   *
   * - 400: the path leads out of the repository
   * - 404: no such conversation or repository, or neither side has the file
   * - 422: the conversation works in the shared tree
   * - 424: git failed; the message says how
   * - 501: git is missing; the message says how to install it
   */
  'GET /agents/{id}/{repo}/file-diff'(input: { id: Text; repo: Text; path: Text }): TwoSides

  /**
   * Show what would not land right now, computed without writing anything.
   *
   * With `repo` and `path`: that one file with its base, the agent's side, the workspace's side and the three-way merge
   * with markers, so that a person can choose.
   *
   * - 400: only one of `repo` and `path`
   * - 404: no such conversation, or the file has no conflict
   * - 422: the conversation works in the shared tree
   * - 424: git failed; the message says how
   * - 501: git is missing; the message says how to install it
   */
  'GET /agents/{id}/conflicts'(input: { id: Text; repo?: Text; path?: Text }): Conflicts

  /**
   * Bring the work into the shared tree as uncommitted changes.
   *
   * Conflicts are an answer, not a failure: where anything does not fit, nothing at all is written in that repository.
   * Index and HEAD are never touched. Answers `landed: true` with nothing done when nothing is outstanding. A parked
   * turn does not block it; a writing one does unless `force`. `only` lands these paths and leaves the others
   * outstanding; `choices` decide path by path. Mode `merge` puts conflict markers where only the main line moved on;
   * what is in the way uncommitted, and what git cannot merge, refuses as in mode `check`. Mode `measure` writes
   * nothing in the tree.
   *
   * - 400: a path leads out of the repository or is named twice
   * - 404: no such conversation
   * - 409: the agent is writing, the main checkout is in a merge or rebase, or a branch or file moved meanwhile;
   *   nothing was written
   * - 422: the conversation works in the shared tree, or a choice names a path that is not outstanding or cannot be
   *   taken so
   * - 424: git failed, or the workspace cannot be written; the message says how
   * - 501: git is missing; the message says how to install it
   */
  'POST /agents/{id}/land'(input: {
    id: Text
    mode?: LandMode
    span?: 'cumulative' | 'outstanding'
    force?: boolean
    only?: LandPath[] & tags.MaxItems<1000>
    choices?: LandChoice[] & tags.MaxItems<1000>
  }): LandResult

  /**
   * Land several conversations in the given order, each against the tree the one before left.
   *
   * One that refuses does not stop the rest.
   *
   * - 400: an id is given twice
   * - 404: an id is unknown; nothing landed
   */
  'POST /agents/land'(input: { ids: Text[] & tags.MinItems<1> & tags.MaxItems<100>; mode?: 'check' | 'merge' }): {
    results: LandOutcome[]
  }

  /**
   * Bring the branch onto today's main line now instead of at the next turn.
   *
   * What is uncommitted is committed, then rebased; where that does not apply, all stays as it was. Touches only the
   * private copy. An empty list: it is there already.
   *
   * - 404: no such conversation
   * - 409: a turn is running or parked, or the copy does not stand on its branch
   * - 422: the conversation works in the shared tree
   * - 424: git failed; the message says how
   * - 501: git is missing; the message says how to install it
   */
  'POST /agents/{id}/sync'(input: { id: Text }): Synced

  /**
   * Throw the work away: its commands, private copy, branch and place on the board.
   *
   * Landed work stays in the tree.
   *
   * - 404: no such conversation
   * - 409: a turn is running or parked
   * - 422: the conversation works in the shared tree: archive it
   * - 424: git could not remove the private copy; the conversation stays
   * - 501: git is missing; the message says how to install it
   */
  'POST /agents/{id}/discard'(input: { id: Text }): Ok

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
   * List the messages that wait, in the order they will start, and the live run.
   *
   * - 404: no such conversation
   */
  'GET /agents/{id}/queue'(input: { id: Text }): ConversationQueue

  /**
   * Take a waiting message back, for the composer; its `messageId` stays used and its run never starts.
   *
   * - 404: no such conversation, or no such message waits
   * - 409: the message was delivered meanwhile
   */
  'DELETE /agents/{id}/queue/{messageId}'(input: { id: Text; messageId: Text }): {
    removed: QueuedMessage
    messages: QueuedMessage[]
  }

  /**
   * Put the queue in this order in one step: all ids that wait, each once.
   *
   * `start` lifts the pause and, when the conversation is free, starts the first, whose `run` is answered.
   *
   * - 404: no such conversation
   * - 409: the list is not exactly what waits
   * - 422: `start` with an empty queue
   */
  'POST /agents/{id}/queue/order'(input: {
    id: Text
    messageIds: MessageId[] & tags.MaxItems<50>
    start?: boolean
  }): OrderedQueue

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

  /**
   * Some cards as they are now, for whoever heard that they may be others; those that are not on the board are gone.
   */
  'agents.cards'(input: { ids: string[] }): Cards
}

export interface AgentsEvents {
  'agent.landed': {
    agentId: ConversationId
    title?: string
    branch: string
    outcome: 'landed'
    repos: { repo: string; from: string; dir: string }[]
  }
  'agent.conflict': { agentId: ConversationId; repos: string[] }
  'agent.archived': { agentId: ConversationId }
  'agent.removed': { agentId: ConversationId; how: 'discarded' | 'purged' }
}

export const agents: Contract<Agents> = {
  schema: () => typia.json.application<Agents>(),
  request: typia.misc.createValidatePrune<Requests<Agents>>(),
  reply: () => typia.createValidate<Replies<Agents>>(),
}
