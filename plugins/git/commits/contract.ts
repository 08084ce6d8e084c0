import type { tags } from 'typia'
import type { Count, Millis, Positive } from '../../../sdk/types.js'
import type { OriginAgents } from '../changes/contract.js'
import type { FileDiff, GitChange, GitRepoName, RepoPath, Revision, Sha } from '../records.js'

/** A commit as a history lists it. */
export interface GitCommit {
  sha: string
  short: string
  parents: string[]
  subject: string
  body: string
  author: string
  email: string
  /** When the author wrote it. */
  at: Millis
  /** Branches, remote branches such as `origin/main`, and tags as `tag: v1`. */
  refs: string[]
  /** HEAD is at this commit. */
  head: boolean
  /** The conversations whose landed work is in it. */
  origins?: string[]
}
/** One page of a history. */
export interface CommitLog {
  repo: string
  branch?: string
  commits: GitCommit[]
  hasMore: boolean
  /** Who the `origins` of its commits are. */
  originAgents?: OriginAgents
}
/** Lines last changed by one commit; no `sha`: not committed yet. */
export interface BlameHunk {
  sha?: string
  start: Positive
  count: Positive
  /** The file's name in that commit, if it differs. */
  from?: string
  fromLine: Positive
  author: string
  email: string
  at: Millis
  subject: string
  /** The conversation whose landing of this file is in the commit, or not committed yet. */
  conversationId?: string
}
/** Who changed each line last. */
export interface Blame {
  path: string
  ref?: string
  /** The number of lines of the file. */
  lines: Count
  hunks: BlameHunk[]
}

/** The history of commits. */
export interface CommitCalls {
  /**
   * List commits, newest first, of all branches and tags or of one.
   *
   * `path` follows one file through renames; `query` is searched in messages and `author` in names and e-mails,
   * literally and ignoring case. A repository without commits has an empty list. People limited to areas
   * get the commits that change files inside them.
   *
   * - 404: no such repository, branch, tag or commit
   * - 422: a shortened id names more than one commit, or the git folder cannot be used
   */
  'GET /git/{repo}/log'(input: {
    repo: GitRepoName
    limit?: Positive & tags.Default<300>
    skip?: Count & tags.Maximum<1000000>
    ref?: Revision
    path?: RepoPath
    query?: string & tags.MinLength<2> & tags.MaxLength<200>
    author?: string & tags.MinLength<1> & tags.MaxLength<200>
  }): CommitLog

  /**
   * List the files that a commit changed against its first parent, or that differ between `base` and it; at most 5,000.
   *
   * - 404: no such repository or commit
   * - 422: a shortened id names more than one commit, a content was left out of a partial clone, or the git folder
   *   cannot be used
   */
  'GET /git/{repo}/commit-diff'(input: { repo: GitRepoName; sha: Sha; base?: Sha }): {
    files: GitChange[]
    truncated?: Count
  }

  /**
   * Get both sides of one file in a commit, each at most 512 KiB; `from` is the earlier name of a renamed file.
   *
   * - 404: no such repository or commit, or the path is on neither side
   * - 422: a shortened id names more than one commit, a content was left out of a partial clone, or the git folder
   *   cannot be used
   */
  'GET /git/{repo}/commit-file-diff'(input: {
    repo: GitRepoName
    sha: Sha
    path: RepoPath
    base?: Sha
    from?: RepoPath
  }): FileDiff

  /**
   * Get who changed each line of a file last, across renames; at most 5,000 lines per call.
   *
   * Without `ref` it is the file on disk, whose uncommitted lines have no `sha`.
   *
   * - 404: no such repository, branch or commit, or no such tracked file there
   * - 413: the file is larger than 5 MiB
   * - 422: the file is binary, `start` is past its end, a content was left out of a partial clone, or the git folder
   *   cannot be used
   */
  'GET /git/{repo}/blame'(input: {
    repo: GitRepoName
    path: RepoPath
    ref?: Revision
    start?: Positive & tags.Default<1>
    end?: Positive
    ignoreWhitespace?: boolean
  }): Blame
}
