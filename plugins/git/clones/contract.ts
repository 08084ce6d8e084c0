import type { tags } from 'typia'
import type { Count, Positive } from '../../../sdk/types.js'
import type { GitRepoName } from '../records.js'

/** A repository that was cloned, or is being cloned. */
export interface ClonedRepo {
  name: string
  path: string
}
/** A repository that was started. */
export interface StartedRepo {
  repo: string
  path: string
  /** Its first commit. */
  head?: string
}
/** What became of one repository. */
export interface RepoSync {
  repo: string
  /**
   * `updated`: it moved forward; `dirty`: it would, and has uncommitted work; `diverged`: both sides have commits of
   * their own; `skipped`: something else holds it.
   */
  status: 'updated' | 'current' | 'dirty' | 'diverged' | 'no-remote' | 'skipped' | 'error'
  behind?: Count
  ahead?: Count
  head?: string
  message?: string
}

/** Repositories that come into the workspace, and those that follow a remote. */
export interface CloneCalls {
  /**
   * Clone a repository into a folder of the workspace's root; a failed clone leaves nothing.
   *
   * The answer comes when it is there, within 10 minutes; with `detach` at once, and `reposChanged` follows, or the
   * activity says why not. Git keeps it outside of the folder, so deleting the folder loses no commit.
   * `filter` leaves out the content of older versions, which are then not shown. Large files stay pointers. Passwords
   * never enter the stored address, which is that of `POST /git/{repo}/remotes`.
   *
   * - 400: a reserved name, or not the form of an address
   * - 409: the name is taken
   * - 413: the disk is full
   * - 422: a path outside of the workspace
   * - 424: the remote refused, is unknown or did not answer; in git's words
   */
  'POST /workspace/repos'(input: {
    name: string & tags.MinLength<1> & tags.MaxLength<100> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9._-]*$'>
    cloneUrl: string & tags.MinLength<1> & tags.MaxLength<2000>
    branch?: string & tags.MinLength<1> & tags.MaxLength<200>
    depth?: Positive
    filter?: 'blob:none'
    detach?: boolean
  }): ClonedRepo

  /**
   * Start a repository in a new or existing folder, with one first commit of what is there unless `commit` is false.
   *
   * Every file stays as it is. Git keeps it outside of the folder, as a cloned one.
   *
   * - 400: not the form of a path or of a branch name
   * - 404: closed
   * - 409: the folder is or lies in a repository, or is no folder
   */
  'POST /workspace/repos/init'(input: {
    path: string & tags.MinLength<1> & tags.MaxLength<4096>
    branch?: string & tags.MinLength<1> & tags.MaxLength<200>
    commit?: boolean
  }): StartedRepo

  /**
   * Fetch every repository that has a remote, or the named ones, and move those forward that are clean and only behind.
   *
   * Four at a time, for 120 s each. Others are reported and left as they are. A point of the workspace is saved before
   * anything moves.
   *
   * - 404: no such repository
   */
  'POST /workspace/sync'(input: { repos?: GitRepoName[] & tags.MaxItems<200> }): { repos: RepoSync[] }
}
