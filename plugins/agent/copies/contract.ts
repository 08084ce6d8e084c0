import type { Count, Size } from '../../../sdk/types.js'
import type { CopyRepo } from '../conversations/conversation.js'

/** Where one repository of a private copy is on this machine. */
export interface CheckoutRepo extends CopyRepo {
  /** The main checkout; absent: it is gone. */
  main?: string
  /** The copy's working tree; absent: retired. */
  copy?: string
  /** The copy's own git dir, with what the repository does not have yet. */
  gitdir?: string
  /**
   * The commit the daemon left the branch on in the repository; one that it has there otherwise is none of the
   * conversation's.
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
  /** The commit of the main line it was to sit on, and the one it sat on before. */
  onto: string
  from: string
  /** Commits of the main line that came in. */
  commits: Count
  blocked: boolean
  /** What a blocked rebase stopped at. */
  paths: string[]
}

/** Private copies of the repositories. */
export interface CopyCalls {
  /** The repositories of the workspace that have a commit: what a private copy is made of. */
  'checkouts.repositories'(): { repos: string[] }

  /** The repositories of a private copy with their folders on this machine. */
  'checkouts.repos'(input: { id: string }): { repos: CheckoutRepo[] }

  /**
   * Commits what the copy holds uncommitted, per repository, takes it into the repository, and answers the tips and the
   * files that are too large for that. `out` says in a sentence why the repository does not have a tip. `repos` are the
   * repositories afterwards.
   */
  'checkouts.commitRest'(input: { id: string }): {
    tips: { repo: string; tip: string; large?: LargeFile[]; out?: string }[]
    repos: CheckoutRepo[]
  }

  /**
   * Commits the rest and moves the branch onto the main line; answers the repositories that were behind as `reports`,
   * and all of them as they are afterwards.
   */
  'checkouts.sync'(input: { id: string }): { reports: CheckoutSync[]; repos: CheckoutRepo[] }
}
