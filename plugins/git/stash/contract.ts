import type { tags } from 'typia'
import type { Millis } from '../../../sdk/types.js'
import type { GitChange, RepoName, Sha } from '../records.js'

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
  'GET /git/{repo}/stashes'(input: { repo: RepoName }): { repo: string; stashes: StashEntry[] }

  /**
   * List the files that an entry of the stash holds, untracked ones included.
   *
   * With `sha` the entry must still be that one.
   *
   * - 404: no such repository or entry
   * - 409: the number names another entry by now
   * - 422: the git folder cannot be used
   */
  'GET /git/{repo}/stash-diff'(input: { repo: RepoName; ref: StashRef; sha?: Sha }): { files: GitChange[] }
}
