import type { tags } from 'typia'
import type { Positive, Text } from '../../../sdk/types.js'
import type { ExpectedHead, GitChange, GitCode, GitOperation, GitResult, GitRepoName, Sha } from '../records.js'

/** What happens on a conflict: nothing changes, or the repository stays halted with markers in the files. */
export type OnConflict = 'abort' | 'keep'

/** A commit that an undo removes from the branch. */
export interface LeavingCommit {
  sha: string
  short: string
  subject: string
}
/** The action that an undo would revert. */
export interface UndoableAction {
  kind: 'commit' | 'amend' | 'merge' | 'rebase' | 'cherry-pick' | 'revert' | 'reset' | 'pull' | 'other'
  description: string
  /** `HEAD` where no branch is checked out. */
  branch: string
  sha: string
  previousSha: string
  /** The files of the two commits differ. */
  changesWorkingTree: boolean
  /** They leave the branch; at most 50. */
  commits: LeavingCommit[]
  /** Some of them are on the upstream. */
  pushed: boolean
  /** What a hard undo changes on disk; at most 200. */
  files: GitChange[]
  /** Uncommitted work that a hard undo destroys; at most 200. */
  wouldLose: string[]
  recommended: 'soft' | 'hard'
}
/** The result of an operation that removes commits from a branch. */
export interface RewriteResult {
  ok: boolean
  reason?: string
  code?: GitCode
  conflicts?: string[]
  head?: string
  point?: string
  /** Replaced commits were on the upstream. */
  pushed: boolean
}
/** The result of continuing an operation. */
export interface ContinueResult {
  ok: boolean
  reason?: string
  code?: GitCode
  conflicts?: string[]
  head?: string
  point?: string
  /** The operation that is still halted. */
  operation?: GitOperation
}

/** Merges, rebases and other operations that move a branch. A point of the workspace is saved before each. */
export interface OperationCalls {
  /**
   * Merge a commit into the current branch; an already merged one is `ok: true` with the same head.
   *
   * - 404: no such repository or commit
   * - 409: an operation is in progress, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: a shortened id names more than one commit, or the git folder cannot be used
   */
  'POST /git/{repo}/merge'(
    input: {
      repo: GitRepoName
      sha: Sha
      onConflict?: OnConflict
      fastForward?: 'allow' | 'never' | 'only'
      message?: Text & tags.MaxLength<20000>
    } & ExpectedHead,
  ): GitResult

  /**
   * Replay the branch's own commits onto another commit; uncommitted changes are `code: "dirty"`.
   *
   * - 404: no such repository or commit
   * - 409: an operation is in progress, HEAD is detached, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: a shortened id names more than one commit, or the git folder cannot be used
   */
  'POST /git/{repo}/rebase'(
    input: { repo: GitRepoName; sha: Sha; onConflict?: OnConflict } & ExpectedHead,
  ): RewriteResult

  /**
   * Copy one commit onto the branch; a change that is already included is `code: "nothing"`.
   *
   * - 404: no such repository or commit
   * - 409: an operation is in progress, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: a merge without `mainline`, a shortened id that names more than one commit, or the git folder cannot be
   *   used
   */
  'POST /git/{repo}/cherry-pick'(
    input: { repo: GitRepoName; sha: Sha; onConflict?: OnConflict; mainline?: Positive } & ExpectedHead,
  ): GitResult

  /**
   * Add a commit that reverts another one.
   *
   * - 404: no such repository or commit
   * - 409: an operation is in progress, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: a merge without `mainline`, a shortened id that names more than one commit, or the git folder cannot be
   *   used
   */
  'POST /git/{repo}/revert'(
    input: { repo: GitRepoName; sha: Sha; onConflict?: OnConflict; mainline?: Positive } & ExpectedHead,
  ): GitResult

  /**
   * Remove one commit from the branch by replaying later ones onto its parent; on a conflict nothing changes.
   *
   * - 404: no such repository or commit
   * - 409: an operation is in progress, HEAD is detached, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: not on this branch, a merge, the first commit, a shortened id that names more than one commit, or the git
   *   folder cannot be used
   */
  'POST /git/{repo}/drop'(input: { repo: GitRepoName; sha: Sha } & ExpectedHead): RewriteResult

  /**
   * Move the branch to a commit; `hard` also resets tracked files; untracked ones are kept.
   *
   * - 404: no such repository or commit
   * - 409: an operation is in progress, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: a shortened id names more than one commit, or the git folder cannot be used
   */
  'POST /git/{repo}/reset'(
    input: { repo: GitRepoName; sha: Sha; mode: 'soft' | 'mixed' | 'hard' } & ExpectedHead,
  ): GitResult

  /**
   * Continue a halted operation after its conflicts were staged; `skip` leaves out the current commit.
   *
   * Stopping at the next conflict is `ok: false`, `code: "conflict"`, with `operation`. A merge commits with `message`
   * or git's prepared one.
   *
   * - 404: no such repository
   * - 409: nothing is in progress, paths are unmerged (`conflicts`), `skip` of a merge, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/continue'(
    input: { repo: GitRepoName; skip?: boolean; message?: Text & tags.MaxLength<20000> } & ExpectedHead,
  ): ContinueResult

  /**
   * Abort a halted operation and restore the tree from before it.
   *
   * Nothing in progress is `ok: false`, `code: "nothing"`.
   * `staleLock` first removes a lock file that is older than 60 s and that no process holds, and only that one.
   *
   * - 404: no such repository
   * - 409: the lock file is not stale, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/abort'(input: { repo: GitRepoName; staleLock?: boolean } & ExpectedHead): GitResult

  /**
   * Preview undoing the last move of the current branch, from its reflog; without a branch, a commit, a reset or a
   * landing.
   *
   * `recommended` is soft for a commit and an amend, hard for operations that rewrote files.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/undo'(input: { repo: GitRepoName }): {
    repo: string
    action?: UndoableAction
    none?: 'mid-operation' | 'detached' | 'no-history' | 'created'
  }

  /**
   * Move the branch back; files and index are kept, or with `discardChanges` reset too.
   *
   * `previousSha` must be that of the preview: if the branch moved since, `ok: false` and nothing happens. `expectHead`
   * is the `sha` of the preview. Undoing again redoes.
   *
   * - 404: no such repository
   * - 409: an operation is in progress, HEAD is not `expectHead`, another write holds the repository for 60 s, or a
   *   lock file of git is in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/undo'(
    input: { repo: GitRepoName; previousSha: Sha; discardChanges?: boolean } & ExpectedHead,
  ): GitResult
}
