import type { tags } from 'typia'
import type { Millis } from '../../../sdk/types.js'
import type { GitChange, GitResult, GitRepoName, RepoPath, Sha } from '../records.js'

/** An entry of the stash by its number, such as `stash@{0}`. */
export type StashRef = string & tags.MinLength<1> & tags.MaxLength<12>

/** A stash entry. */
export interface StashEntry {
  ref: string
  sha: string
  short: string
  subject: string
  /** The branch it was made on. */
  branch?: string
  at: Millis
  parents: string[]
}

/** The stash. */
export interface StashCalls {
  /**
   * List the stash entries, newest first; at most 500.
   *
   * People limited to areas get the entries that change tracked files inside them.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/stashes'(input: { repo: GitRepoName }): { repo: string; stashes: StashEntry[] }

  /**
   * List the files of a stash entry, including untracked ones.
   *
   * With `sha` the entry must still have that commit.
   *
   * - 404: no such repository or entry
   * - 409: the number now names another entry
   * - 422: the git folder cannot be used
   */
  'GET /git/{repo}/stash-diff'(input: { repo: GitRepoName; ref: StashRef; sha?: Sha }): { files: GitChange[] }

  /**
   * Stash uncommitted work; a clean tree is `ok: false`, `code: "nothing"`.
   *
   * - 404: no such repository
   * - 409: an operation is in progress, there is no commit yet,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/stash'(input: {
    repo: GitRepoName
    message?: string & tags.MaxLength<500>
    includeUntracked?: boolean
    paths?: RepoPath[] & tags.MinItems<1> & tags.MaxItems<500>
  }): GitResult

  /**
   * Apply an entry; `pop` drops it after it applied cleanly.
   *
   * On conflict the entry is kept and the files have markers; with `onConflict: "abort"` nothing changes.
   *
   * - 404: no such repository or entry
   * - 409: an operation is in progress, the number now names another entry,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/stash/apply'(input: {
    repo: GitRepoName
    ref: StashRef
    sha?: Sha
    pop?: boolean
    onConflict?: 'abort' | 'keep'
  }): GitResult

  /**
   * Drop an entry; its commit can be restored for as long as git keeps it.
   *
   * - 404: no such repository or entry
   * - 409: the number now names another entry, another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/stash/drop'(input: { repo: GitRepoName; ref: StashRef; sha?: Sha }): { ok: true; sha: string }
}
