import type { tags } from 'typia'
import type { Count, Ok, Positive } from '../../../sdk/types.js'
import type { LandedMessage } from '../../agent/contract.js'
import type {
  ExpectedHead,
  HeldInfo,
  LockInfo,
  GitOperation,
  GitRepoName,
  RepoPath,
  UncommittedChanges,
} from '../records.js'

/** A conversation that landed something. */
export interface OriginAgent {
  title?: string
  provider: string
  /** The message that was drafted for it. */
  landedMessage?: LandedMessage
}
/** Conversations by their ids. */
export interface OriginAgents {
  [conversationId: string]: OriginAgent
}
/** Uncommitted changes, by repository. */
export interface RepositoryChanges {
  repos: UncommittedChanges[]
  /** The conversations that landed some of it, named by `origins` of a repository. */
  originAgents?: OriginAgents
  /** Repositories in which a commit is in progress. */
  committing?: string[]
}
/** A repository, with host and project of its first remote. */
export interface RemoteRepo {
  repo: string
  host: string
  project: string
}
/** A short status for scripts. */
export interface ShortStatus {
  /** Empty: HEAD is detached. */
  branch: string
  dirty: boolean
  files: string[]
  head?: string
  /** How many paths are not listed. */
  truncated?: Count
}
/** Both sides of an uncommitted file. */
export interface WorkingFileDiff {
  before?: string
  after?: string
  binary?: boolean
  /** A side is larger than 512 KiB; the texts are then left out. */
  truncated?: boolean
  /** The three stages of an unmerged file. */
  base?: string
  ours?: string
  theirs?: string
}
/** The halted operation of a repository, and the holder of its lock. */
export interface OperationState {
  repo: string
  operation?: GitOperation
  head?: string
  onto?: string
  step?: Positive
  total?: Positive
  subject?: string
  unmerged: Count
  canContinue: boolean
  /** A lock file of git. */
  lock?: LockInfo
  /** A write of the sandbox. */
  held?: HeldInfo
}

/** The stamps of uncommitted changes, by path. */
export interface ChangesSeen {
  [path: string]: string & tags.MaxLength<64>
}

/** Uncommitted work. */
export interface GitChangeCalls {
  /**
   * List the uncommitted changes of every repository, or of one.
   *
   * The index against HEAD, the working tree against the index, unmerged paths, a halted operation, and the
   * distance of the branch to its upstream. A repository is listed if any of these is not empty. At most
   * 500 changes of each repository are listed, all conflicts first, then staged ones; `truncated` counts the
   * rest. A repository that cannot be read within 30 s has `error`. Callers within 500 ms share one scan, and none is
   * older than the last write of a call. `origins` and `originAgents` say which conversations landed what of it.
   *
   * - 404: the named repository
   */
  'GET /git/changes'(input: { repo?: GitRepoName }): RepositoryChanges

  /**
   * List the repositories in folders of the workspace, sorted; the repository `root` is not listed.
   *
   * It searches as deep as `GET /workspace/repos`, 6 levels and at most 50,000 folders, and lists all that this call
   * lists. It also lists repositories in hidden and ignored folders, in `refs` and `public`, and in other repositories:
   * a repository often ignores the folder of its clones, and the work in these would be neither reviewed nor saved. It
   * leaves out the folders that package managers and builds fill, such as `node_modules` and `dist`.
   */
  'GET /git/repos'(): { repos: string[] }

  /**
   * List the repositories whose remotes name a host and a project; `origin` takes precedence.
   *
   * `root` and repositories without such a remote are left out.
   */
  'GET /git/remote-repos'(): { repos: RemoteRepo[] }

  /**
   * Get a short status for scripts: the branch, whether anything is uncommitted, and at most 10,000 paths.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/status'(input: { repo: GitRepoName }): ShortStatus

  /**
   * Get both sides of an uncommitted file, each at most 512 KiB.
   *
   * `staged` is HEAD against the index, `unstaged` the index against the disk, `conflicted` HEAD against the disk with
   * conflict markers and the three stages. The disk side has the line ends and filters that git would store.
   *
   * - 404: no such repository, or the path is on neither side
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/file-diff'(input: {
    repo: GitRepoName
    path: RepoPath
    side: 'staged' | 'unstaged' | 'conflicted'
  }): WorkingFileDiff

  /**
   * Get the halted operation of a repository, its progress, and the current holder of the repository.
   *
   * It is read from files and never waits for a write.
   *
   * - 404: no such repository
   * - 422: its git folder cannot be used
   */
  'GET /git/{repo}/operation'(input: { repo: GitRepoName }): OperationState

  /**
   * Stage paths as on disk, including deletions; staging an unmerged path resolves it.
   *
   * A path may be a folder. `take` first writes that side to disk, for unmerged paths only. `content` is staged as the
   * text of one file in place of what is on disk, which stays, so that a part of a change is staged or unstaged alone;
   * `baseHash` is the SHA-256 of the staged text that it was made from.
   *
   * - 400: `content` without `baseHash`, with `take`, or with several paths
   * - 404: no such repository, or a path is neither on disk nor tracked
   * - 409: what is staged is not that of `baseHash`, `content` for an unmerged path,
   *   another write holds the repository for 60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: `take` on a path without conflict, `content` for anything but a plain file, an unusable git folder
   */
  'POST /git/{repo}/stage'(input: {
    repo: GitRepoName
    paths: RepoPath[] & tags.MinItems<1> & tags.MaxItems<500>
    take?: 'ours' | 'theirs'
    content?: string & tags.MaxLength<524288>
    baseHash?: string & tags.Pattern<'^[0-9a-f]{64}$'>
  }): Ok

  /**
   * Unstage paths: reset them in the index to HEAD, or to untracked before the first commit; files do not change.
   *
   * - 404: no such repository
   * - 409: a path is unmerged, another write holds the repository for 60 s, or a lock file of git is in the way for
   *   10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/unstage'(input: {
    repo: GitRepoName
    paths: RepoPath[] & tags.MinItems<1> & tags.MaxItems<500>
  }): Ok

  /**
   * Commit the index, or first stage everything (`all`) or the named paths.
   *
   * With `only`, the named paths alone are committed, and what else is staged stays staged. The repository's hooks run,
   * for at most 120 s. It concludes a merge. Nothing to commit is `committed: false`. The author is the name of the
   * repository's settings, else the caller's; of the owner of this machine, who has none, it is the name in their own
   * settings of git. `changes` is the repository as read before anything else could change it; a refused commit does
   * not change the index.
   *
   * - 400: both `all` and `paths`, `only` without `paths`, or a blank message
   * - 404: no such repository, or a path is neither on disk nor tracked
   * - 409: unmerged paths (`conflicts`), a hook refused (its line), a rebase is in progress, HEAD is not `expectHead`,
   *   another write holds the repository for 60 s, or a lock file of git is in the way for 10 s (`lock`)
   * - 422: `amend` before the first commit, or the git folder cannot be used
   */
  'POST /git/{repo}/commit'(
    input: {
      repo: GitRepoName
      message: string & tags.MinLength<1> & tags.MaxLength<20000>
      all?: boolean
      paths?: RepoPath[] & tags.MinItems<1> & tags.MaxItems<500>
      only?: boolean
      amend?: boolean
    } & ExpectedHead,
  ): { committed: boolean; head?: string; changes?: UncommittedChanges }

  /**
   * Discard uncommitted work: tracked files are reset to HEAD, untracked ones deleted, ignored ones kept.
   *
   * Both names of a rename are discarded together. Without `paths` it is the whole repository. A saved point of the
   * workspace keeps the discarded work; if it cannot be saved nothing is discarded. With `expect`, the stamps of
   * `GET /git/changes` by path, only the changes that it listed are discarded.
   *
   * - 404: no such repository
   * - 409: in the middle of an operation without `paths`, a change is not that of `expect` (`moved` names the paths),
   *   HEAD is not `expectHead`, another write holds the repository for 60 s, or a lock file
   *   of git is in the way for 10 s (`lock`)
   * - 422: the git folder cannot be used
   */
  'POST /git/{repo}/discard'(
    input: {
      repo: GitRepoName
      paths?: RepoPath[] & tags.MinItems<1> & tags.MaxItems<500>
      expect?: ChangesSeen
    } & ExpectedHead,
  ): {
    ok: true
    point?: string
  }
}
