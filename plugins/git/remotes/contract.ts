import type { tags } from 'typia'
import type { Count, Millis, Ok } from '../../../sdk/types.js'
import type { ExpectedHead, GitRemoteState, GitRepoName, GitResult, RefName, RepoPath, Sha } from '../records.js'

/** The name of a configured remote. */
export type RemoteName = string & tags.MinLength<1> & tags.MaxLength<200>
/** A commit message. */
type CommitWords = string & tags.MinLength<1> & tags.MaxLength<20000>

/** The progress of publishing a file. */
export interface PublishedFile {
  ok: boolean
  /** The file had other content before. */
  wrote: boolean
  committed: boolean
  pushed: boolean
  branch?: string
  /** The default branch of the remote. */
  defaultBranch?: string
  /** Why it stopped. */
  reason?: string
}
/** A deleted tag. */
export interface DeletedTag {
  ok: true
  /** The result of deleting it at the named remote too. */
  remote?: GitResult
}

/** A configured remote; its addresses are without user name and password. */
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
   * Get the state of the current branch relative to its remote: its own, otherwise `origin`, otherwise the first.
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

  /**
   * Add a remote or change its address; without `url` remove it with the refs of its branches.
   *
   * An address is https, http, ssh, git, host:path, or a path of the workspace. The value that is bound to the host of
   * an https address in the secrets goes with every fetch and push; for ssh it is a private key without a passphrase.
   * The host key that an ssh server shows first is kept, and another one is refused later.
   *
   * - 400: not the form of an address, a helper program, or a password in it
   * - 404: no such repository, or no remote of that name to remove
   * - 409: another write holds the repository for 60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: a path outside of the workspace, or the git folder cannot be used
   */
  'POST /git/{repo}/remotes'(input: {
    repo: GitRepoName
    name: RefName
    url?: string & tags.MinLength<1> & tags.MaxLength<2000>
  }): Ok

  /**
   * Update the refs of a remote; files and local branches do not change.
   *
   * Without `remote` that of the branch, otherwise `origin`, otherwise the first. Refs of branches that were deleted
   * there are removed unless `prune` is false. It ends after 10 minutes, or 2 minutes without progress.
   *
   * - 404: no such repository or remote
   * - 409: another write holds the repository for 60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/fetch'(input: { repo: GitRepoName; remote?: RemoteName; prune?: boolean }): GitResult

  /**
   * Fetch, and fast-forward the current branch to its upstream.
   *
   * If both have their own commits nothing changes: `code: "not-fast-forward"`, with both counts in `reason`.
   *
   * - 404: no such repository
   * - 409: an operation is in progress, HEAD is detached or not `expectHead`, another write holds the repository for
   *   60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/pull'(input: { repo: GitRepoName } & ExpectedHead): GitResult

  /**
   * Push one branch, by default the current one, to its own remote.
   *
   * The pre-push hook of the repository runs first, separately and without a credential. A branch without an upstream
   * then follows the pushed one. `force` replaces the remote branch only if it is still as last seen. `expectHead` is
   * the last commit of the pushed branch.
   *
   * - 404: no such repository or branch
   * - 409: no branch is checked out, the branch is not at `expectHead` (`sha` is its commit now), another write holds
   *   the repository for 60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/push'(
    input: {
      repo: GitRepoName
      branch?: string & tags.MinLength<1> & tags.MaxLength<200>
      force?: 'with-lease'
    } & ExpectedHead,
  ): GitResult

  /**
   * Publish exactly one tag.
   *
   * With `sha`, only while that is its commit, as `GET /git/{repo}/branches` lists it.
   *
   * - 404: no such repository, tag or remote
   * - 409: the tag is not at `sha` (`sha` is its commit now), another write holds the repository for 60 s, or a lock
   *   file of git is in the way for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/tag/push'(input: { repo: GitRepoName; name: RefName; remote: RemoteName; sha?: Sha }): GitResult

  /**
   * Delete a tag here and, if a remote is named, there; `remote` is the result of the latter.
   *
   * With `sha`, only while that is its commit.
   *
   * - 404: no such repository, tag or remote
   * - 409: the tag is not at `sha` (`sha` is its commit now), another write holds the repository for 60 s, or a lock
   *   file of git is in the way for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/tag/delete'(input: { repo: GitRepoName; name: RefName; remote?: RemoteName; sha?: Sha }): DeletedTag

  /**
   * Write a whole text file of at most 16 MiB like `PUT /workspace/file`, by its path from the repository.
   *
   * - 404: no such repository, or closed
   * - 409: the file changed (`hash`), it is a folder, a file is in the way, or it belongs to git
   * - 413: more than 16 MiB, or the disk is full
   * - 422: the git folder cannot be used
   * - 503: the group workspace is not served
   */
  'PUT /git/{repo}/file'(input: {
    repo: GitRepoName
    path: RepoPath
    content: string
    baseHash?: string & tags.Pattern<'^([0-9a-f]{64}|absent)$'>
  }): Ok

  /**
   * Write one text file of at most 1 MiB, commit it alone and push it, if the current branch is the default branch
   * of the remote.
   *
   * Other staged changes stay staged. If it cannot continue, `ok` is false with a `reason`; a repetition continues
   * from there. The push takes every commit of the branch along: `expectHead` is the last one that was seen, and
   * `baseHash` the file, as for `PUT /workspace/file`.
   *
   * - 404: no such repository, or closed
   * - 409: an operation is in progress, HEAD is not `expectHead`, the file is not that of `baseHash` (`hash`), the path
   *   is a folder or belongs to git, another write holds the repository for 60 s, or a lock file of git is in the way
   *   for 10 s (`lock`)
   * - 413: more than 1 MiB, or the disk is full
   * - 422: the address of the remote or the git folder cannot be used
   * - 503: the group workspace is not served
   */
  'POST /git/{repo}/publish-file'(
    input: {
      repo: GitRepoName
      path: RepoPath
      content: string & tags.MaxLength<1048576>
      message: CommitWords
      baseHash?: string & tags.Pattern<'^([0-9a-f]{64}|absent)$'>
    } & ExpectedHead,
  ): PublishedFile
}
