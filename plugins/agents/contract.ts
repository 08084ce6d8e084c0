import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Size, Text } from '../../sdk/types.js'
import type {
  ConflictReason, ConversationId, LandConflict, Matches, MessageId, QueuedMessage, RunId, TranscriptPage,
  WaitingMessages,
} from '../agent/contract.js'
import type { AgentCard, Roster, Cards } from './board.js'

export type * from './board.js'

export type ChangeStatus = 'added' | 'modified' | 'deleted' | 'renamed' | 'type-changed' | 'conflicted'
/** One path the conversation changed; no counts: binary. */
export interface AgentChange {
  path: string
  status: ChangeStatus
  from?: string
  additions?: Count
  deletions?: Count
  landed: boolean
  /** Its size: a file of more than 512 MiB is not committed, so it stays in the private copy and does not land. */
  tooLarge?: Size
}
export interface ModuleFolder {
  dir: string
  name: string
}
export interface RepoChanges {
  repo: string
  branch?: string
  changes: AgentChange[]
  /** The packages that hold a changed path. */
  modules: ModuleFolder[]
}
export interface AgentChanges {
  repos: RepoChanges[]
  /** The last refusal asked again against today's tree; absent when nothing refuses. */
  conflicts?: LandConflict[]
}
/** Both sides of a file, each at most 1 MiB; a missing side means added or deleted. */
export interface TwoSides {
  before?: string
  after?: string
  binary?: boolean
  truncated?: boolean
}
/** `check`: all of a repository or nothing; `merge`: with conflict markers; `measure`: nothing is written. */
export type LandMode = 'check' | 'merge' | 'measure'
/** A path of the work, relative to its repository. */
export interface LandPath {
  repo: Text
  path: Text
}
/** What becomes of one path: the agent's version replaces yours, yours stays and counts as landed, or it stays outstanding. */
export interface LandChoice {
  repo: Text
  path: Text
  take: 'agent' | 'workspace' | 'skip'
}
export interface RepoPaths {
  repo: string
  paths: string[]
}
/** A file that no landing brings, and why. */
export interface LargePath {
  repo: string
  path: string
  size: Size
  reason: string
}
/** What a landing did in the shared tree. */
export interface LandResult {
  landed: boolean
  conflicts?: LandConflict[]
  /** Files that now hold conflict markers. */
  resolving?: RepoPaths[]
  /** Skipped paths, still outstanding. */
  left?: RepoPaths[]
  /** Files that stay in the private copy, because they are too large to be committed. */
  tooLarge?: LargePath[]
  /** Something is outstanding; measuring applied nothing. */
  held?: boolean
}
/** One conversation of a landing of many: its result, or why it could not land. */
export interface LandOutcome {
  id: ConversationId
  result?: LandResult
  error?: { status: number & tags.Type<'uint32'>; message: string }
}
/** One version of a file, at most 256 KiB of it. */
export interface Side {
  missing?: boolean
  size?: Count
  binary?: boolean
  text?: string
  truncated?: boolean
}
/** A file that does not land now; the sides only when one file is asked for. */
export interface ConflictFile {
  repo: string
  path: string
  reason: ConflictReason
  from?: string
  /** Places a merge would mark; absent where git cannot merge. */
  hunks?: Count
  base?: Side
  agent?: Side
  workspace?: Side
  /** With conflict markers. */
  merged?: Side
}
export interface Conflicts {
  files: ConflictFile[]
  /** The branch of each main checkout. */
  mainBranch: { [repo: string]: string }
}
/** How one repository of a private copy was brought up to date. */
export interface SyncReport {
  repo: string
  /** The commit of the main line it sits on now, or would have. */
  onto: string
  /** Commits of the main line that came in. */
  commits: Count
  /** Paths the main line changed. */
  moved: string[]
  /** Those of them this conversation also changed. */
  overlap: string[]
  /** It did not apply, and everything stayed as it was. */
  blocked?: boolean
  /** What a blocked rebase stopped at. */
  paths?: string[]
}
export interface Synced {
  repos: SyncReport[]
  agent: AgentCard
}

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
  'GET /agents/search'(input: { query: string & tags.MinLength<2> & tags.MaxLength<200>; caseSensitive?: boolean }): Matches

  /** Give one conversation's card, with its standing computed now. */
  'GET /agents/{id}'(input: { id: Text }): AgentCard

  /**
   * Give the record in order, tools and answers included.
   *
   * Without `limit` the whole record, with it the last rows before index `before`. A live run is not in it yet: attach
   * shows it. An `editor` token reads only conversations it opened.
   */
  'GET /agents/{id}/transcript'(input: { id: Text; limit?: number & tags.Type<'uint32'> & tags.Minimum<1>; before?: Count }): TranscriptPage

  /**
   * Show everything the conversation changed since its branch left main, per repository, landed or not.
   *
   * Uncommitted work of its private copy is included. A repository that cannot be read is left out and logged.
   */
  'GET /agents/{id}/diff'(input: { id: Text }): AgentChanges

  /** Give both sides of one file over the same span as the diff; a missing side means added or deleted. */
  'GET /agents/{id}/{repo}/file-diff'(input: { id: Text; repo: Text; path: Text }): TwoSides

  /**
   * Show what would not land right now, computed without writing anything.
   *
   * With `repo` and `path`: that one file with its base, the agent's side, the workspace's side and the three-way merge
   * with markers, so that a person can choose.
   */
  'GET /agents/{id}/conflicts'(input: { id: Text; repo?: Text; path?: Text }): Conflicts

  /**
   * Bring the work into the shared tree as uncommitted changes.
   *
   * Conflicts are an answer, not a failure: where anything does not fit, nothing at all is written in that repository.
   * Index and HEAD are never touched. Answers `landed: true` with nothing done when nothing is outstanding. A parked
   * turn does not block it; a writing one does unless `force`. `only` lands these paths and leaves the others
   * outstanding; `choices` decide path by path. Mode `merge` puts conflict markers where only the main line moved on;
   * what is in the way uncommitted, and what git cannot merge, refuses as in mode `check`. Mode `measure` writes nothing
   * in the tree.
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
   */
  'POST /agents/land'(input: { ids: Text[] & tags.MinItems<1> & tags.MaxItems<100>; mode?: 'check' | 'merge' }): { results: LandOutcome[] }

  /**
   * Bring the branch onto today's main line now instead of at the next turn.
   *
   * What is uncommitted is committed, then rebased; where that does not apply, all stays as it was. Touches only the
   * private copy. An empty list: it is there already.
   */
  'POST /agents/{id}/sync'(input: { id: Text }): Synced

  /**
   * Throw the work away: its commands, private copy, branch and place on the board.
   *
   * Landed work stays in the tree.
   */
  'POST /agents/{id}/discard'(input: { id: Text }): Ok

  /**
   * Add a line to the record in the agent's voice, with no turn behind it.
   *
   * People see it marked. The provider's memory is cleared, so that the next turn reads the line as its own words.
   */
  'POST /agents/{id}/place'(input: { id: Text; text: string & tags.MinLength<1> & tags.MaxLength<8000> }): Ok

  /** Set the title a person chose; no generated title replaces it. */
  'POST /agents/{id}/rename'(input: { id: Text; title: string & tags.MinLength<1> & tags.MaxLength<80> }): AgentCard

  /**
   * Choose whether this conversation's work lands by itself after a clean turn; null follows the rules again.
   *
   * It is read when a turn ends, so it counts for the one now running. Words of somebody who may not land, and a wake
   * from outside, leave the work to a person.
   */
  'POST /agents/{id}/auto-land'(input: { id: Text; autoLand: boolean | null }): AgentCard

  /**
   * Choose whether turns of this conversation are run again after an outage of their provider; null follows the setting.
   *
   * Turning it on picks up a turn that died of an outage within the last 60 minutes.
   */
  'POST /agents/{id}/resume-after-outage'(input: { id: Text; resumeAfterOutage: boolean | null }): AgentCard

  /** Stamp the read mark of a conversation. */
  'POST /agents/{id}/seen'(input: { id: Text }): AgentCard

  /** Stamp many read marks at once, all of them without `ids`; one that is unknown refuses all. */
  'POST /agents/seen'(input: { ids?: Ids }): Roster

  /**
   * Mark the conversation as waiting for somebody who may land, with who asked.
   *
   * The landing or discard that answers it takes the mark away. Asking again keeps the first time.
   */
  'POST /agents/{id}/request-land'(input: { id: Text }): AgentCard

  /** List the messages that wait, in the order they will start, and the live run. */
  'GET /agents/{id}/queue'(input: { id: Text }): ConversationQueue

  /** Take a waiting message back, for the composer; its `messageId` stays used and its run never starts. */
  'DELETE /agents/{id}/queue/{messageId}'(input: { id: Text; messageId: Text }): { removed: QueuedMessage; messages: QueuedMessage[] }

  /**
   * Put the queue in this order in one step: all ids that wait, each once.
   *
   * `start` lifts the pause and, when the conversation is free, starts the first, whose `run` is answered.
   */
  'POST /agents/{id}/queue/order'(input: { id: Text; messageIds: MessageId[] & tags.MaxItems<50>; start?: boolean }): OrderedQueue

  /**
   * Put conversations away: the rest is committed, the private copy goes, the branch is parked, the record is kept.
   *
   * Without `ids` every finished one. One that fails stays on the board. Finished ones go by themselves after the days
   * that the settings name (`agentRetentionDays`).
   */
  'POST /agents/archive'(input: { ids?: Ids }): Archived

  /** Bring conversations back from the archive, as the newest activity; the private copy is rebuilt by the next turn. */
  'POST /agents/unarchive'(input: { ids: Ids & tags.MinItems<1> }): Moved

  /**
   * Delete archived conversations for good: branches, transcripts and what waits.
   *
   * Without `ids` the whole archive. One that fails stays in the archive.
   */
  'POST /agents/purge'(input: { ids?: Ids }): { removed: ConversationId[]; failed?: Failure[] }

  /** Some cards as they are now, for whoever heard that they may be others; those that are not on the board are gone. */
  'agents.cards'(input: { ids: string[] }): Cards
}

export interface AgentsEvents {
  'agent.landed': { agentId: ConversationId; title?: string; branch: string; outcome: 'landed'; repos: { repo: string; from: string; dir: string }[] }
  'agent.conflict': { agentId: ConversationId; repos: string[] }
  'agent.archived': { agentId: ConversationId }
  'agent.removed': { agentId: ConversationId; how: 'discarded' | 'purged' }
}

export const agents: Contract<Agents> = {
  schema: () => typia.json.application<Agents>(),
  request: typia.misc.createValidatePrune<Requests<Agents>>(),
  reply: () => typia.createValidate<Replies<Agents>>(),
}
