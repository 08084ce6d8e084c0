import type { Count, Millis } from '../../../sdk/types.js'
import type { GitRemoteState, GitRepoName } from '../records.js'

/** A configured remote; its addresses hold no user name and no password. */
export interface GitRemote {
  name: string
  url: string
  pushUrl?: string
  host?: string
  project?: string
  /** Its branches as last seen. */
  branches: Count
  fetchedAt?: Millis
}

/** Remotes. */
export interface RemoteCalls {
  /**
   * Say where the branch that is checked out stands to its remote: its own, else `origin`, else the first.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/remote'(input: { repo: GitRepoName }): GitRemoteState

  /**
   * List the configured remotes.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/remotes'(input: { repo: GitRepoName }): { remotes: GitRemote[] }
}
