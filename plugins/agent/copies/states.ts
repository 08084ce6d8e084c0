import type { CheckoutSync, CopyRepo, LargeFile } from '../contract.js'

/** What a sync did: the repositories as they stand now, how many commits of the main line came in, and what stayed. */
export interface SyncedCopy {
  readonly repos: CopyRepo[]
  readonly commits: number
  readonly blocked: string[]
  /** Each repository that was behind. */
  readonly reports: CheckoutSync[]
  /** The state the copy is in, when no branch moved: nothing in it is uncommitted. */
  readonly checkpoint?: Checkpoint
}

/** The commit each repository of a copy stands on. */
export interface Tip {
  readonly repo: string
  readonly tip: string
  /** What of the copy is uncommitted, because it is too large. */
  readonly large?: LargeFile[]
  /** Why the repository does not have it, in a sentence. */
  readonly out?: string
}

/** A state of a copy that can be gone back to. */
export interface Checkpoint {
  readonly id: string
  readonly commits: Tip[]
}

/** A copy that was made ready. */
export interface Opened {
  readonly repos: CopyRepo[]
  /** The state it is in, when it was made anew: nothing in it is uncommitted. */
  readonly checkpoint?: Checkpoint
}

/** The state that can be gone back to, from the commits of its repositories. */
export const checkpointOf = (commits: Tip[]): Checkpoint => {
  const root = commits.find(({ repo }) => repo === 'root') ?? commits[0]
  return { id: `branch:${root?.tip ?? ''}`, commits }
}
