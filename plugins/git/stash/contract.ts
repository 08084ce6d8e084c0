import type { tags } from 'typia'
import type { Millis } from '../../../sdk/types.js'
import type { GitChange, GitResult, GitRepoName, RepoPath, Sha } from '../records.js'

/** An entry of the stash by its number, such as `stash@{0}`. */
export type StashRef = string & tags.MinLength<1> & tags.MaxLength<12>

/** Work that was set aside. */
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
   * List what is set aside, newest first; at most 500 entries.
   *
   * People limited to areas get the entries that change tracked files of theirs.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/stashes'(input: { repo: GitRepoName }): { repo: string; stashes: StashEntry[] }

  /**
   * List the files that an entry of the stash holds, untracked ones included.
   *
   * With `sha` the entry must still be that one.
   *
   * - 404: no such repository or entry
   * - 409: the number names another entry by now
   * - 422: the git folder cannot be used
   */
  'GET /git/{repo}/stash-diff'(input: { repo: GitRepoName; ref: StashRef; sha?: Sha }): { files: GitChange[] }

  /**
   * Set uncommitted work aside; a clean tree is `ok: false`, `code: "nothing"`.
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
   * Put an entry back; `pop` drops it after it applied cleanly.
   *
   * On conflict the entry stays and the files hold markers; with `onConflict: "abort"` everything is as before.
   *
   * - 404: no such repository or entry
   * - 409: an operation is in progress, the number names another entry by now,
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
   * Throw an entry away; its commit can be brought back for as long as git keeps it.
   *
   * - 404: no such repository or entry
   * - 409: the number names another entry by now, another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/stash/drop'(input: { repo: GitRepoName; ref: StashRef; sha?: Sha }): { ok: true; sha: string }
}
