import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Positive, Text } from '../../sdk/types.js'
import type { ConversationId, Harness, LandConflict, OpenCard, ProviderId, RunEnd, RunId, TranscriptPage } from '../agent/contract.js'

export type AgentStatus =
  | 'idle' | 'running' | 'awaiting' | 'stopping' | 'stopped' | 'ready' | 'landed' | 'conflict' | 'error' | 'interrupted'

/** What the agent is doing now. */
export interface AgentActivity {
  tool?: string
  target?: string
  todo?: string
}
/** Which kinds of attention the conversation waits for. */
export interface AgentAttention {
  plan: boolean
  question: boolean
  permission: boolean
  help: boolean
  service: boolean
  capability: boolean
  payment: boolean
  conflict: boolean
}
export interface DiffTotals {
  files: Count
  insertions: Count
  deletions: Count
}
/** One conversation on the board. */
export interface AgentCard {
  id: ConversationId
  sessionId?: string
  title?: string
  status: AgentStatus
  /** The sentence the last run died on; only with status `error`. */
  failure?: string
  provider: ProviderId
  harness: Harness
  model?: string
  effort?: string
  thinking?: boolean
  fast?: boolean
  actsAs?: string
  startIn?: string
  /** Both absent for the shared tree. */
  branch?: string
  /** Short commit of the root repository the branch sits on. */
  base?: string
  openedBy: string
  lastBy: string
  /** The newest run, and how it ended; no `lastEnd` while it lives. */
  run?: RunId
  lastEnd?: RunEnd
  /** Open cards. */
  cards?: OpenCard[]
  /** Messages in the queue. */
  waiting?: Positive
  queuePaused?: boolean
  costUsd?: number
  inputTokens?: Count
  outputTokens?: Count
  contextTokens?: Count
  contextWindow?: Count
  activity?: AgentActivity
  attention: AgentAttention
  turns?: Count
  toolUses?: Count
  diff?: DiffTotals
  /** Only while a run lives. */
  startedAt?: Millis
  updatedAt: Millis
  seenAt?: Millis
  archivedAt?: Millis
}
/** An automation's turn that waits for a yes; there are none without automations. */
export interface HeldWake {
  id: string
}
export interface Roster {
  agents: AgentCard[]
  /** Only grows; drop a roster older than one you hold. */
  rev: Count
  held: HeldWake[]
}

export type ChangeStatus = 'added' | 'modified' | 'deleted' | 'renamed' | 'type-changed' | 'conflicted'
/** One path the conversation changed; no counts: binary. */
export interface AgentChange {
  path: string
  status: ChangeStatus
  from?: string
  additions?: Count
  deletions?: Count
  landed: boolean
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
/** What a landing did in the shared tree. */
export interface LandResult {
  landed: boolean
  conflicts?: LandConflict[]
}

export interface Agents {
  /** List every live conversation, newest activity first, with standings computed now. */
  'GET /agents'(): Roster

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
   * Bring the work into the shared tree as uncommitted changes.
   *
   * Conflicts are an answer, not a failure: where anything does not fit, nothing at all is written in that repository.
   * Index and HEAD are never touched. Answers `landed: true` with nothing done when nothing is outstanding. A parked
   * turn does not block it; a writing one does unless `force`.
   */
  'POST /agents/{id}/land'(input: { id: Text; mode?: 'check'; span?: 'cumulative' | 'outstanding'; force?: boolean }): LandResult

  /**
   * Throw the work away: its commands, private copy, branch and place on the board.
   *
   * Landed work stays in the tree.
   */
  'POST /agents/{id}/discard'(input: { id: Text }): Ok
}

export interface AgentsEvents {
  'agent.landed': { agentId: ConversationId; title?: string; branch: string; outcome: 'landed'; repos: { repo: string; from: string; dir: string }[] }
  'agent.conflict': { agentId: ConversationId; repos: string[] }
  'agent.removed': { agentId: ConversationId; how: 'discarded' | 'purged' }
}

export const agents: Contract<Agents> = {
  schema: () => typia.json.application<Agents>(),
  request: typia.misc.createValidatePrune<Requests<Agents>>(),
  reply: () => typia.createValidate<Replies<Agents>>(),
}
