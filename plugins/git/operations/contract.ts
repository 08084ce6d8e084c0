import type { tags } from 'typia'
import type { Positive, Text } from '../../../sdk/types.js'
import type { ExpectedHead, GitChange, GitCode, GitOperation, GitResult, GitRepoName, Sha } from '../records.js'

/** What happens on a conflict: everything as before, or the repository stays halted with markers in the files. */
export type OnConflict = 'abort' | 'keep'

/** A commit that an undo takes off the branch. */
export interface LeavingCommit {
  sha: string
  short: string
  subject: string
}
/** What an undo would take back. */
export interface UndoableAction {
  kind: 'commit' | 'amend' | 'merge' | 'rebase' | 'cherry-pick' | 'revert' | 'reset' | 'pull' | 'other'
  description: string
  branch: string
  sha: string
  previousSha: string
  /** The two commits hold other files. */
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
/** What an operation answers that takes commits off a branch. */
export interface RewriteResult {
  ok: boolean
  reason?: string
  code?: GitCode
  conflicts?: string[]
  head?: string
  point?: string
  /** Commits that it replaced were on the upstream. */
  pushed: boolean
}
/** How an operation went on. */
export interface ContinueResult {
  ok: boolean
  reason?: string
  code?: GitCode
  conflicts?: string[]
  head?: string
  point?: string
  /** Still halted in it. */
  operation?: GitOperation
}

/** Merges, rebases and what else moves a branch. A point of the workspace is saved before each. */
export interface OperationCalls {
  /**
   * Merge a commit into the branch that is checked out; one that is merged already is `ok: true` with the same head.
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
   * Copy one commit onto the branch; a change that is there already is `code: "nothing"`.
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
   * Add a commit that takes the change of another one back.
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
   * Take one commit out of the branch by replaying what follows onto its parent; on a conflict everything is as before.
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
   * Move the branch to a commit; untracked files stay, `hard` returns tracked ones.
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
   * Go on with a halted operation after its conflicts were staged; `skip` leaves the present commit out.
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
   * End a halted operation and return the tree to where it began.
   *
   * Nothing in progress is `ok: false`, `code: "nothing"`.
   * `staleLock` first removes a lock file that is older than 60 s and that no process holds, and only that one.
   *
   * - 404: no such repository
   * - 409: the lock file is not stale,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/abort'(input: { repo: GitRepoName; staleLock?: boolean }): GitResult

  /**
   * Preview undoing the last thing that moved the branch that is checked out, from that branch's own log.
   *
   * `recommended` is soft for a commit and an amend, hard for what rewrote files.
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
   * Move the branch back: files and index stay, or with `discardChanges` the tree goes back too.
   *
   * `previousSha` must be the one previewed: where the branch moved since, `ok: false` and nothing happens. Undoing
   * again redoes.
   *
   * - 404: no such repository
   * - 409: an operation is in progress, another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/undo'(input: { repo: GitRepoName; previousSha: Sha; discardChanges?: boolean }): GitResult
}
