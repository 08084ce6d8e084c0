import type { tags } from 'typia'
import type { Count, Millis, Positive } from '../../sdk/types.js'

/** A repository: `root`, or its path from the workspace root. */
export type GitRepoName = string & tags.MinLength<1> & tags.MaxLength<4096>
/** The id of a commit, whole or shortened. */
export type Sha = string & tags.MinLength<4> & tags.MaxLength<64> & tags.Pattern<'^[0-9a-f]*$'>
/** The name of a branch, a tag or a remote, as `git check-ref-format` accepts it. */
export type RefName = string & tags.MinLength<1> & tags.MaxLength<200>
/** A branch, a tag, `HEAD` or the id of a commit. */
export type Revision = string & tags.MinLength<1> & tags.MaxLength<200>
/** A path from the root of its repository; it is taken literally. */
export type RepoPath = string & tags.MinLength<1> & tags.MaxLength<4096>
/** An operation in which a repository can be halted. */
export type GitOperation = 'merge' | 'rebase' | 'cherry-pick' | 'revert'

/** One changed path; no counts: binary, or larger than 512 KiB. */
export interface GitChange {
  path: string
  status: 'added' | 'modified' | 'deleted' | 'renamed' | 'type-changed' | 'conflicted'
  /** The name before a rename. */
  from?: string
  additions?: Count
  deletions?: Count
  /** Of an uncommitted change: names what is in the index and on disk, as `expect` of a discard takes it. */
  stamp?: string
}
/** The state of a branch relative to its upstream, as of the last fetch. */
export interface GitRemoteState {
  remote?: string
  branch?: string
  upstream?: string
  ahead: Count
  behind: Count
  /** The commit on which the branch stands. */
  head?: string
}
/** The uncommitted changes of one repository. */
export interface UncommittedChanges {
  repo: string
  /** Absent: HEAD is detached. */
  branch?: string
  conflicted: GitChange[]
  operation?: GitOperation
  /** The index against HEAD. */
  staged: GitChange[]
  /** The working tree against the index. */
  unstaged: GitChange[]
  /** How many changes are not listed. */
  truncated?: Count
  remote?: GitRemoteState
  /** Which conversations landed a path since it was last committed, the newest first. */
  origins?: { [path: string]: string[] }
  /** Why the repository cannot be read. */
  error?: string
}
/** Both sides of a file; a missing side means added or deleted. */
export interface FileDiff {
  before?: string
  after?: string
  binary?: boolean
  /** A side is larger than 512 KiB; the texts are then left out. */
  truncated?: boolean
}
/** Why git did not succeed. */
export type GitCode =
  | 'conflict'
  | 'nothing'
  | 'dirty'
  | 'no-remote'
  | 'no-upstream'
  | 'not-fast-forward'
  | 'rejected'
  | 'auth'
  | 'unreachable'
  | 'checked-out'
  | 'unmerged'
  | 'other'
/** The result of running git. */
export interface GitResult {
  ok: boolean
  /** One line: git's error, or the objection of a hook. */
  reason?: string
  code?: GitCode
  conflicts?: string[]
  /** HEAD afterwards. */
  head?: string
  /** The saved point of the workspace from before. */
  point?: string
}
/** A lock file of git. */
export interface LockInfo {
  /** Such as `index.lock`. */
  file: string
  ageMs: Count
  pid?: Positive
  command?: string
  /** It is older than 60 s and no process holds it. */
  stale: boolean
}
/** The current holder of a repository. */
export interface HeldInfo {
  /** Such as `commit by ann@example.org`. */
  by: string
  since: Millis
  /** The number of waiting writes. */
  queued: Count
}
/** For calls that change HEAD or the index: refused with 409 if HEAD is at another commit. */
export interface ExpectedHead {
  expectHead?: Sha
}
