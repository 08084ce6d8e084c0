import type { tags } from 'typia'
import type { Count, Millis, Ok } from '../../../sdk/types.js'
import type { ExpectedHead, GitRemoteState, GitRepoName, GitResult, RefName, RepoPath } from '../records.js'

/** The name of a configured remote. */
export type RemoteName = string & tags.MinLength<1> & tags.MaxLength<200>
/** What a commit says. */
type CommitWords = string & tags.MinLength<1> & tags.MaxLength<20000>

/** How far publishing a file came. */
export interface PublishedFile {
  ok: boolean
  /** The file was not like this before. */
  wrote: boolean
  committed: boolean
  pushed: boolean
  branch?: string
  /** The branch that the remote shows. */
  defaultBranch?: string
  /** Why it went no further. */
  reason?: string
}
/** A deleted tag. */
export interface DeletedTag {
  ok: true
  /** What the named remote said to deleting it there too. */
  remote?: GitResult
}

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
   * Bring the refs of a remote to what it has now; files and branches stay.
   *
   * Without `remote` that of the branch, else `origin`, else the first. Branches that are gone there go here too unless
   * `prune` is false. It ends after 10 minutes, or 2 minutes without progress. Two fetches of one remote are one.
   *
   * - 404: no such repository or remote
   * - 409: another write holds the repository for 60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/fetch'(input: { repo: GitRepoName; remote?: RemoteName; prune?: boolean }): GitResult

  /**
   * Fetch, and move the branch that is checked out forward to what it follows.
   *
   * Where both have commits of their own nothing moves: `code: "not-fast-forward"`, with both counts in `reason`.
   *
   * - 404: no such repository
   * - 409: an operation is in progress, HEAD is detached or not `expectHead`, another write holds the repository for
   *   60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/pull'(input: { repo: GitRepoName } & ExpectedHead): GitResult

  /**
   * Push one branch, the one checked out when left out, to its own remote.
   *
   * The pre-push hook of the repository runs before, apart and without a credential. A branch that follows nothing yet
   * follows the pushed one from then on. `force` replaces what is there only if it is what was last seen.
   *
   * - 404: no such repository or branch
   * - 409: no branch is checked out, another write holds the repository for 60 s, or a lock file of git is in the way
   *   for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/push'(input: {
    repo: GitRepoName
    branch?: string & tags.MinLength<1> & tags.MaxLength<200>
    force?: 'with-lease'
  }): GitResult

  /**
   * Publish exactly one tag.
   *
   * - 404: no such repository, tag or remote
   * - 409: another write holds the repository for 60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/tag/push'(input: { repo: GitRepoName; name: RefName; remote: RemoteName }): GitResult

  /**
   * Delete a tag here and, where a remote is named, there; `remote` says what came of the latter.
   *
   * - 404: no such repository, tag or remote
   * - 409: another write holds the repository for 60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: the address of the remote or the git folder cannot be used
   */
  'POST /git/{repo}/tag/delete'(input: { repo: GitRepoName; name: RefName; remote?: RemoteName }): DeletedTag

  /**
   * Write a whole text file of at most 16 MiB, as `PUT /workspace/file` does, by its path from the repository.
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
   * Write one text file of at most 1 MiB, commit it alone and push it, if the branch that is checked out is the one
   * that the remote shows.
   *
   * What else is staged stays staged. Where it cannot go on, `ok` is false and `reason` says why; a repetition goes on
   * from there.
   *
   * - 404: no such repository, or closed
   * - 409: an operation is in progress, the path is a folder or belongs to git, another write holds the repository for
   *   60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 413: more than 1 MiB, or the disk is full
   * - 422: the address of the remote or the git folder cannot be used
   * - 503: the group workspace is not served
   */
  'POST /git/{repo}/publish-file'(input: {
    repo: GitRepoName
    path: RepoPath
    content: string & tags.MaxLength<1048576>
    message: CommitWords
  }): PublishedFile
}
