import type { tags } from 'typia'
import type { Count, Size, Text } from '../../../sdk/types.js'
import type { ConflictReason, ConversationId, InTheWay, LandConflict } from '../../agent/contract.js'
import type { AgentCard } from '../../agent/contract.js'

export type ChangeStatus = 'added' | 'modified' | 'deleted' | 'renamed' | 'type-changed' | 'conflicted'
/** One changed path; without counts it is binary. */
export interface AgentChange {
  path: string
  status: ChangeStatus
  from?: string
  additions?: Count
  deletions?: Count
  landed: boolean
  /**
   * The size of a file of more than 512 MiB, which is not committed: it stays in the private copy and does not land.
   */
  tooLarge?: Size
}
export interface ModuleFolder {
  dir: string
  name: string
}
export interface RepoChanges {
  repo: string
  branch?: string
  /**
   * What `expect` of a landing or a discard takes: the commit that holds all that is shown. While a turn has
   * uncommitted work it is the commit of the branch, `+` and the tree of that work.
   */
  tip: Text
  /** Of a submodule: the commit of the conversation that a landing checks out, so that the pointer to it moves. */
  commit?: string
  changes: AgentChange[]
  /** The packages that contain a changed path. */
  modules: ModuleFolder[]
}
export interface AgentChanges {
  repos: RepoChanges[]
  /** The conflicts of the last landing, computed against the current tree; absent without conflicts. */
  conflicts?: LandConflict[]
}
/** Both sides of a file, each at most 1 MiB; a missing side means added or deleted. */
export interface TwoSides {
  before?: string
  after?: string
  binary?: boolean
  truncated?: boolean
}
/** The tips that a diff answered, by repository: what a person saw of the work. */
export interface ExpectedTips {
  [repo: string]: Text
}
/** `check`: all of a repository or nothing; `merge`: with conflict markers; `measure`: writes nothing. */
export type LandMode = 'check' | 'merge' | 'measure'
/** A path of the work, relative to its repository. */
export interface LandPath {
  repo: Text
  path: Text
}
/**
 * The choice for one path. `agent`: the agent's version replaces yours; `workspace`: yours stays and counts as landed;
 * `skip`: it stays outstanding.
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
/** A file that cannot land, and why. */
export interface LargePath {
  repo: string
  path: string
  size: Size
  reason: string
}
/** A submodule whose checkout is on another commit now. */
export interface MovedSubmodule {
  repo: string
  commit: string
}
/** The result of a landing. */
export interface LandResult {
  landed: boolean
  conflicts?: LandConflict[]
  /** Files that now contain conflict markers. */
  resolving?: RepoPaths[]
  /** The files that it wrote: they stand in the workspace uncommitted, and new conversations start without them. */
  uncommitted?: RepoPaths[]
  /** Skipped paths, still outstanding. */
  left?: RepoPaths[]
  /** New files whose names your git ignores; it shows them as new files all the same, until you unstage them. */
  ignored?: RepoPaths[]
  /** Submodules in which the conversation committed: git shows their pointers as changed in the repositories around. */
  moved?: MovedSubmodule[]
  /** Files that stay in the private copy because they are too large to be committed. */
  tooLarge?: LargePath[]
  /** Work is outstanding; mode `measure` applied nothing. */
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
/** A file with a conflict; has its sides only if one file is requested. */
export interface ConflictFile {
  repo: string
  path: string
  reason: ConflictReason
  /** Absent: a file stands there, with other content. */
  inTheWay?: InTheWay
  from?: string
  /** Number of conflicts in a merge; absent if git cannot merge it. */
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
/** How one repository of a private copy was rebased. */
export interface SyncReport {
  repo: string
  /** The commit of the main line that it is based on now, or would have been. */
  onto: string
  /** Number of new commits of the main line. */
  commits: Count
  /** Paths the main line changed. */
  moved: string[]
  /** Those of them this conversation also changed. */
  overlap: string[]
  /** The rebase had conflicts, and nothing changed. */
  blocked?: boolean
  /** The conflicting paths of a blocked rebase. */
  paths?: string[]
}
export interface Synced {
  repos: SyncReport[]
  agent: AgentCard
}
