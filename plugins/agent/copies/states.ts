import type { CheckoutSync, CopyRepo, LargeFile } from '../contract.js'

/** The result of a sync: the repositories now, the added commits of the main line, and what was left unchanged. */
export interface SyncedCopy {
  readonly repos: CopyRepo[]
  readonly commits: number
  readonly blocked: string[]
  /** Each repository that was behind. */
  readonly reports: CheckoutSync[]
  /** The checkpoint of the copy if no branch moved: nothing in it is uncommitted. */
  readonly checkpoint?: Checkpoint
}

/** The commit of a repository of a copy. */
export interface Tip {
  readonly repo: string
  readonly tip: string
  /** Files that are uncommitted because they are too large. */
  readonly large?: LargeFile[]
  /** A sentence that says why it was not imported. */
  readonly out?: string
  /** Paths whose files are not committed: git cannot add them, or they are of a repository that is not in the copy. */
  readonly apart?: string[]
  /** It is not on its branch, which therefore lacks work. */
  readonly detached?: true
  /** Submodules that its branch points to other commits of, which their own branches do not hold. */
  readonly pointers?: string[]
  /** Files that git ignores, which are not committed; without those in ignored folders. */
  readonly ignored?: string[]
}

/** A state of a copy that can be restored. */
export interface Checkpoint {
  readonly id: string
  readonly commits: Tip[]
}

/** A prepared copy. */
export interface Opened {
  readonly repos: CopyRepo[]
  readonly branch: string
  /** Its checkpoint if it is new: nothing in it is uncommitted. */
  readonly checkpoint?: Checkpoint
  /** The filters of a new copy that could not run, by repository. */
  readonly unfiltered?: readonly { readonly repo: string; readonly filters: readonly string[] }[]
}

/** A tip without what is only said at the end of a turn. */
export const tipAlone = ({ ignored: _, detached: __, pointers: ___, ...tip }: Tip): Tip => tip

/** The checkpoint with these commits. */
export const checkpointOf = (tips: readonly Tip[]): Checkpoint => {
  const commits = tips.map(tipAlone)
  const root = commits.find(({ repo }) => repo === 'root') ?? commits[0]
  return { id: `branch:${root?.tip ?? ''}`, commits }
}
