import type { tags } from 'typia'
import type { Count, Millis, Ok } from '../../../sdk/types.js'
import type { ExpectedHead, GitResult, RefName, GitRepoName, Revision, Sha } from '../records.js'

/** A local branch. */
export interface GitBranch {
  name: string
  current: boolean
  /** Its last commit. */
  sha: string
  upstream?: string
  /** Commits that the upstream lacks, and commits that only it has. */
  ahead: Count
  behind: Count
  /** The upstream no longer exists at the remote. */
  gone?: boolean
  at: Millis
  /** The conversation in whose private copy it is checked out. */
  heldBy?: string
}
/** A branch of a remote as last seen. */
export interface GitRemoteBranch {
  name: string
  remote: string
  branch: string
  at: Millis
}
/** A tag and its commit. */
export interface GitTag {
  name: string
  sha: string
  at: Millis
  annotated: boolean
  message?: string
}
/** The branches and tags of a repository, each list newest first. */
export interface BranchList {
  branches: GitBranch[]
  remotes: GitRemoteBranch[]
  tags: GitTag[]
  /** The default branch of `origin`. */
  defaultBranch?: string
  /** The full names of refs that name no commit of the repository, about the first 100: they are in no list. */
  broken?: string[]
}
/** A checkout that shares a repository; without `path` it lies outside the workspace. */
export interface GitWorktree {
  path?: string
  /** The conversation whose private copy it is. */
  conversationId?: string
  main: boolean
  branch?: string
  head: string
  locked?: string
  prunable?: string
}
/** A declared submodule: the commit recorded, and the one checked out. */
export interface GitSubmodule {
  path: string
  url: string
  recorded: string
  checkedOut?: string
  state: 'current' | 'modified' | 'uninitialized' | 'conflicted'
}

/** Branches, tags and worktrees. */
export interface BranchCalls {
  /**
   * List local branches with upstream and distance, remote branches as last seen, and tags; at most 2,000 of each and
   * 1,000 tags.
   *
   * `merged` limits local branches to those that HEAD contains, or does not. People limited to areas do not see the
   * branches of conversations.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/branches'(input: { repo: GitRepoName; merged?: boolean }): BranchList

  /**
   * List the checkouts that share a repository, and its declared submodules.
   *
   * Those in the workspace are named by path, private copies by conversation.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/worktrees'(input: { repo: GitRepoName }): { worktrees: GitWorktree[]; submodules: GitSubmodule[] }

  /**
   * Create a branch at a commit; HEAD and files do not change.
   *
   * - 404: no such repository or commit
   * - 409: the name is taken or clashes with a folder of refs,
   *   another write holds the repository for 60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: a shortened id names more than one commit, or the git folder cannot be used
   */
  'POST /git/{repo}/branch'(input: { repo: GitRepoName; sha: Sha; name: RefName }): Ok

  /**
   * Create a branch at `start`, by default HEAD; `checkout` also switches to it and keeps uncommitted work if git can.
   *
   * - 404: no such repository or `start`
   * - 409: the name is taken, with `checkout` an operation is in progress or uncommitted work is in the way,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: a shortened id names more than one commit, or the git folder cannot be used
   */
  'POST /git/{repo}/branches'(input: { repo: GitRepoName; name: RefName; start?: Revision; checkout?: boolean }): Ok

  /**
   * Delete a local branch and return its last commit; without `force` an unmerged one is refused.
   *
   * With `sha`, only while that is its last commit.
   *
   * - 404: no such repository or branch
   * - 409: not merged, not at `sha` (`sha` is its commit now), checked out here or in a private copy,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/branches/delete'(input: { repo: GitRepoName; name: RefName; force?: boolean; sha?: Sha }): {
    ok: true
    sha: string
  }

  /**
   * Tag a commit, annotated when a message is given.
   *
   * - 404: no such repository or commit
   * - 409: the name is taken, another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: a shortened id names more than one commit, or the git folder cannot be used
   */
  'POST /git/{repo}/tag'(input: {
    repo: GitRepoName
    sha: Sha
    name: RefName
    message?: string & tags.MinLength<1> & tags.MaxLength<20000>
  }): Ok

  /**
   * Switch to a branch, a tag or a commit; the latter two detach HEAD.
   *
   * A remote branch without a local one of its name gets one that follows it. A name never stands for a file. Work
   * that would be overwritten: `ok: false`, `code: "dirty"`, and `conflicts` names the files.
   *
   * - 404: no such repository, branch, tag or commit
   * - 409: an operation is in progress, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is
   *   in the way for 10 s (`lock`)
   * - 422: a shortened id names more than one commit, or the git folder cannot be used
   */
  'POST /git/{repo}/checkout'(input: { repo: GitRepoName; ref: Revision } & ExpectedHead): GitResult
}
