import type { tags } from 'typia'
import type { Positive } from '../../../sdk/types.js'
import type { GitRepoName, RepoPath, Revision } from '../records.js'

/** A whole text file. */
export interface RepoFile {
  path: string
  content: string
  /** The id of its content; with `ref` only. */
  sha?: string
  /** It is not entirely UTF-8; invalid bytes are replaced by U+FFFD. */
  lossy?: true
}

/** Files of a repository. */
export interface GitFileCalls {
  /**
   * List the tracked paths in git's order; pass the last one as `after` for the next page.
   *
   * A path that is not UTF-8 is shown with U+FFFD.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/files'(input: {
    repo: GitRepoName
    prefix?: RepoPath
    limit?: Positive & tags.Default<100000>
    after?: RepoPath
  }): { files: string[]; hasMore: boolean }

  /**
   * Read a whole file of at most 1 MiB from disk, or as it was at a commit, branch or tag.
   *
   * - 404: no such repository, branch, tag or commit, or no such file there
   * - 413: the file is larger than 1 MiB
   * - 422: a folder, a submodule, a link out of the workspace, at a commit any link, a content that a partial clone
   *   left out, or the git folder cannot be used
   */
  'GET /git/{repo}/file'(input: { repo: GitRepoName; path: RepoPath; ref?: Revision }): RepoFile
}
