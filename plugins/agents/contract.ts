import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { ChangedSides, Millis, Ok, SidePair, Size, Text } from '../../sdk/types.js'
import type { ReachFolder } from '../../sdk/reach.js'
import type {
  AgentCard,
  Cards,
  ConversationId,
  ConversationState,
  LandedMessage,
  Moved,
  Roster,
} from '../agent/contract.js'
import type {
  AgentChanges,
  Conflicts,
  ExpectedTips,
  LandChoice,
  LandMode,
  LandOutcome,
  LandPath,
  LandResult,
  Synced,
  TwoSides,
} from './work/contract.js'

export type {
  AgentActivity,
  AgentAttention,
  AgentCard,
  AgentStatus,
  Cards,
  DiffTotals,
  HeldWake,
  LandedPresence,
  Roster,
} from '../agent/contract.js'
export type * from './work/contract.js'

/** A landing of a path. */
export interface OriginLanding {
  conversationId: ConversationId
  at: Millis
}
/** A conversation that landed something, and where it works. */
export interface OriginConversation {
  title?: string
  provider: string
  landedMessage?: LandedMessage
  startIn?: string
  folders?: ReachFolder[]
}
/** Who landed the paths of a repository. */
export interface Origins {
  paths: { [path: string]: OriginLanding[] }
  agents: { [conversationId: string]: OriginConversation }
}

export interface Agents {
  /** List all conversations on the board, newest activity first, with their current branch status. */
  'GET /agents'(): Roster

  /**
   * List the archived conversations, newest first.
   *
   * Without `limit`, all of them; with it, the newest that were archived before `before`.
   */
  'GET /agents/archived'(input: { limit?: number & tags.Type<'uint32'> & tags.Minimum<1>; before?: Millis }): Roster

  /**
   * Give a conversation's card, with its current branch status.
   *
   * - 404: no such conversation
   */
  'GET /agents/{id}'(input: { id: Text }): AgentCard

  /**
   * Show all changes of the conversation since its branch left main, per repository, landed or not.
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
   * Of a file with a filter that the person's git has, such as one that is encrypted, they are what people work with.
   *
   * - 400: the path leads out of the repository
   * - 404: no such conversation or repository, or neither side has the file
   * - 409: the branch is gone from the repository
   * - 422: the conversation works in the shared tree
   * - 424: git failed; the message says how
   * - 501: git is missing; the message says how to install it
   */
  'GET /agents/{id}/{repo}/file-diff'(input: { id: Text; repo: Text; path: Text }): TwoSides

  /**
   * Show the conflicts of landing now, without writing anything.
   *
   * With `repo` and `path`: only that file, with its base, the agent's side, the workspace's side and the three-way
   * merge with markers.
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
   * Conflicts are an answer, not an error: a repository with a conflict is not written at all. Index and HEAD never
   * change, with two exceptions. In a submodule in which the conversation committed or checked out a commit, its
   * checkout moves to that commit, which git then shows as a change of the pointer (`moved`). A new file whose name
   * git ignores is added to the index with the intent to add, so that git shows it (`ignored`). Answers `landed: true`
   * if nothing is outstanding. A parked turn does not block it; a writing one does unless `force`. `only` lands these
   * paths and leaves the others outstanding; `choices` decide path by path. Mode `merge` writes conflict markers where
   * only the main line changed; uncommitted changes in the way, and files that git cannot merge, are conflicts as in
   * mode `check`. Mode `measure` writes nothing in the tree.
   *
   * With `expect`, the tips of `GET /agents/{id}/diff`, exactly what that diff showed lands: other work, uncommitted
   * work on top of it and a repository that `expect` leaves out are 409, with the new `tips` and the paths that changed
   * in `moved`. Without it, work of a later turn lands too.
   *
   * - 400: a path leads out of the repository or is named twice
   * - 404: no such conversation
   * - 409: the agent is writing, the main checkout is in a merge or rebase, a submodule with work is not checked out or
   *   has other commits or staged changes, a branch or file moved meanwhile, or the work is not what `expect` names;
   *   nothing was written there
   * - 422: the conversation works in the shared tree, or a choice names a path that is not outstanding or cannot take
   *   this version
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
    expect?: ExpectedTips
  }): LandResult

  /**
   * Land several conversations in the given order, each against the tree that the previous one left.
   *
   * A conversation that cannot land does not stop the rest. With `expect`, the tips of the diffs by conversation,
   * exactly what those showed lands; a conversation whose work is other than that is answered with 409.
   *
   * - 400: an id is given twice, or `expect` leaves one out; nothing landed
   * - 404: an id is unknown; nothing landed
   */
  'POST /agents/land'(input: {
    ids: Text[] & tags.MinItems<1> & tags.MaxItems<100>
    mode?: 'check' | 'merge'
    expect?: { [conversation: string]: ExpectedTips }
  }): { results: LandOutcome[] }

  /**
   * Rebase the branch onto the current main line now instead of at the next turn.
   *
   * Commits uncommitted work, then rebases; a repository in which that has conflicts stays unchanged. Changes only the
   * private copy. The list is empty if the branch is up to date.
   *
   * - 404: no such conversation
   * - 409: a turn is running or parked, or the copy is not on its branch
   * - 422: the conversation works in the shared tree
   * - 424: git failed; the message says how
   * - 501: git is missing; the message says how to install it
   */
  'POST /agents/{id}/sync'(input: { id: Text }): Synced

  /**
   * Discard the work: its commands, private copy, branch and place on the board.
   *
   * Landed work stays in the tree. With `expect`, the tips of the diff, only what that diff showed is discarded.
   *
   * - 404: no such conversation
   * - 409: a turn is running or parked, or the work is not what `expect` names: `tips` and `moved` as for a landing
   * - 422: the conversation works in the shared tree: archive it
   * - 424: git could not remove the private copy; the conversation stays
   * - 501: git is missing; the message says how to install it
   */
  'POST /agents/{id}/discard'(input: { id: Text; expect?: ExpectedTips }): Ok

  /** Gives the current cards of these conversations; `gone` has the ids that are not on the board. */
  'agents.cards'(input: { ids: string[] }): Cards

  /** Gives the card of a conversation in this state. */
  'agents.card'(input: { state: ConversationState }): AgentCard

  /** Gives the cards of conversations in these states, with the revision of the board. */
  'agents.moved'(input: { states: ConversationState[] }): Moved

  /** Gives the ids of the finished conversations on the board. */
  'agents.finished'(): { ids: string[] }

  /**
   * Writes both sides of a file, as `GET /agents/{id}/{repo}/file-diff` compares them, into a folder, each up to `most`
   * bytes.
   */
  'agents.sides'(input: { id: string; repo: string; path: string; folder: string; most: Size }): SidePair

  /** Gives the files that a conversation changed in a repository since its branch left main. */
  'agents.changed'(input: { id: string; repo: string }): { changes: ChangedSides[] }

  /** Refuses a conversation without outstanding work, or whose work is not on its branch yet. */
  'agents.assertOutstanding'(input: { state: ConversationState }): Ok

  /** Who landed the paths of a repository: the newest landing of each first. */
  'agents.origins'(input: { repo: string }): Origins
}

export interface AgentsEvents {
  /** The message of a landing was drafted, or its draft went on. */
  'agent.described': { agentId: ConversationId }
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
