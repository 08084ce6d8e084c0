import type { Count, Size } from '../../../sdk/types.js'
import type { CopyRepo } from '../conversations/conversation.js'
import type { ProgramBehindWall } from '../turn/contract.js'
import type { BaseCommit } from '../turn/input.js'

/** Where one repository of a private copy is on this machine. */
export interface CheckoutRepo extends CopyRepo {
  /** The main checkout, or the place of a submodule that is not checked out; absent: it is gone. */
  main?: string
  /** The copy's working tree; absent: retired. */
  copy?: string
  /** The copy's own git dir, with the objects that the repository does not have yet. */
  gitdir?: string
  /**
   * The commit to which the daemon set the branch in the repository; another commit there is not the conversation's.
   */
  tip?: string
}

/** A file of a private copy that is not committed, because it is larger than 512 MiB. */
export interface LargeFile {
  path: string
  size: Size
  /** The branch has an earlier version of it. */
  tracked?: true
}
/** How the sandbox brought one repository of a private copy onto the main line. */
export interface CheckoutSync {
  repo: string
  /** The commit of the main line to rebase onto, and the previous base. */
  onto: string
  from: string
  /** The number of commits of the main line that were added. */
  commits: Count
  blocked: boolean
  /** The conflicting paths of a blocked rebase. */
  paths: string[]
}

/** What the repositories of a conversation hold: a hash of HEAD, index and working files. */
export interface TreeContent {
  hash: string
  /** Nothing was committed or changed since the copy was made from its base. */
  untouched: boolean
}

/** A shell command in the tree of a conversation. */
export interface TreeCommandAsked {
  id: string
  command: string
  /** The folder it runs in, from the root of the tree; left out: where turns start. */
  folder?: string
}

/** The declared check of a package. */
export interface PackageCheck {
  /** The folder of the package, from the root of the tree. */
  folder: string
  command: string
}

/** Private copies of the repositories. */
export interface CopyCalls {
  /** The repositories of the workspace that have a commit, which a private copy contains. */
  'checkouts.repositories'(): { repos: string[] }

  /** The same repositories with the commits that are checked out now, for private copies that are to be comparable. */
  'checkouts.snapshot'(): { repos: BaseCommit[] }

  /** The repositories of a private copy with their folders on this machine. */
  'checkouts.repos'(input: { id: string }): { repos: CheckoutRepo[] }

  /** How many files at or below a path of a private copy are not committed. */
  'checkouts.uncommitted'(input: { id: string; path: string }): { files: Count }

  /**
   * Commits uncommitted work per repository, imports it, and returns the tips and the files that are too large. `out`
   * is a sentence that says why a tip was not imported. `repos` are the repositories afterwards.
   */
  'checkouts.commitRest'(input: { id: string }): {
    tips: { repo: string; tip: string; large?: LargeFile[]; out?: string }[]
    repos: CheckoutRepo[]
    branch?: string
  }

  /**
   * Commits uncommitted work and rebases the branch onto the main line; returns the repositories that were behind as
   * `reports`, and all repositories afterwards.
   */
  'checkouts.sync'(input: { id: string }): { reports: CheckoutSync[]; repos: CheckoutRepo[] }

  /**
   * What the repositories of a conversation hold, or those of the workspace for one that is still to be opened; without
   * a repository there is no `hash`.
   */
  'checkouts.content'(input: { id: string }): Partial<TreeContent>

  /**
   * The command that runs a shell command in the tree of a conversation, behind its wall, in its network and within its
   * limits, while no turn has to run.
   */
  'checkouts.walled'(input: TreeCommandAsked): ProgramBehindWall

  /**
   * The checks that the packages around some files declare: the script typecheck, else lint, else test. At most 20
   * packages; a package without such a script has none.
   */
  'checkouts.packageChecks'(input: { id: string; paths: string[] }): { checks: PackageCheck[] }
}
