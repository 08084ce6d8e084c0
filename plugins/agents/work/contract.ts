import type { tags } from 'typia'
import type { Count, Size, Text } from '../../../sdk/types.js'
import type { ConflictReason, ConversationId, LandConflict } from '../../agent/contract.js'
import type { AgentCard } from '../../agent/contract.js'

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
/**
 * What becomes of one path: the agent's version replaces yours, yours stays and counts as landed, or it stays
 * outstanding.
 */
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
