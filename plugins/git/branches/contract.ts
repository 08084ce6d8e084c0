import type { Count, Millis } from '../../../sdk/types.js'
import type { RepoName } from '../records.js'

/** A local branch. */
export interface GitBranch {
  name: string
  current: boolean
  upstream?: string
  /** Commits that the upstream does not have, and those that only it has. */
  ahead: Count
  behind: Count
  /** The upstream is gone from the remote. */
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
/** A tag and the commit it stands for. */
export interface GitTag {
  name: string
  sha: string
  at: Millis
  annotated: boolean
  message?: string
}
/** What a repository has refs for, each list newest first. */
export interface BranchList {
  branches: GitBranch[]
  remotes: GitRemoteBranch[]
  tags: GitTag[]
  /** The default branch of `origin`. */
  defaultBranch?: string
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
  'GET /git/{repo}/branches'(input: { repo: RepoName; merged?: boolean }): BranchList

  /**
   * List the checkouts that share a repository, and its declared submodules.
   *
   * Those in the workspace are named by path, private copies by conversation.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/worktrees'(input: { repo: RepoName }): { worktrees: GitWorktree[]; submodules: GitSubmodule[] }
}
