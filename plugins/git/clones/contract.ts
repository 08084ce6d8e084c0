import type { tags } from 'typia'
import type { Count, Positive } from '../../../sdk/types.js'
import type { GitRepoName } from '../records.js'

/** A repository that was cloned, or is being cloned. */
export interface ClonedRepo {
  name: string
  path: string
}
/** A created repository. */
export interface StartedRepo {
  repo: string
  path: string
  /** Its first commit. */
  head?: string
}
/** The result for one repository. */
export interface RepoSync {
  repo: string
  /**
   * `updated`: it was fast-forwarded; `dirty`: uncommitted work prevents that; `diverged`: both sides have their own
   * commits; `skipped`: something else holds it.
   */
  status: 'updated' | 'current' | 'dirty' | 'diverged' | 'no-remote' | 'skipped' | 'error'
  behind?: Count
  ahead?: Count
  head?: string
  message?: string
}

/** Cloned and created repositories, and repositories that follow a remote. */
export interface CloneCalls {
  /**
   * Clone a repository into a folder of the workspace's root; a failed clone leaves no files.
   *
   * The answer comes when it is complete, within 10 minutes; with `detach` at once, followed by `reposChanged`, or
   * the reason in the activity. Its git dir is outside of the folder, so deleting the folder loses no commit.
   * `filter` leaves out the content of older versions, which then cannot be shown. LFS files stay pointers. Passwords
   * are never stored in the address, which has the form of `POST /git/{repo}/remotes`.
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
   * Create a repository in a new or existing folder, with a first commit of its files unless `commit` is false.
   *
   * Files do not change. Its git dir is outside of the folder, as for a clone.
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
   * Fetch every repository with a remote, or the named ones, and fast-forward those that are clean and only behind.
   *
   * Four at a time, for 120 s each. Others are reported and not changed. A point of the workspace is saved before
   * any change.
   *
   * - 404: no such repository
   */
  'POST /workspace/sync'(input: { repos?: GitRepoName[] & tags.MaxItems<200> }): { repos: RepoSync[] }
}
