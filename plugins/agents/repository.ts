import type { CheckoutRepo } from '../agent/contract.js'
import { gitFolders, type GitFolders, type Head, type Refs } from './git-folders.js'

/** One repository of a conversation as it stands now: what git keeps of it, main's HEAD and the branch's tip. */
export interface Repository {
  readonly checkout: CheckoutRepo
  readonly main: string
  readonly folders: GitFolders
  readonly head: Head
  readonly tip: string
}

/** The commit of a conversation's branch, parked or not. */
export const tipOf = (refs: Refs, folders: GitFolders, branch: string): string | undefined =>
  refs.commit(folders, `refs/heads/${branch}`) ?? refs.commit(folders, `refs/sandbox/parked/${branch.replace(/^agent\//, '')}`)

/** Looks at a repository; undefined when its main checkout or the branch is gone. */
export const lookAt = (refs: Refs, checkout: CheckoutRepo, branch: string, tip?: string): Repository | undefined => {
  const { main } = checkout
  const folders = main === undefined ? undefined : gitFolders(main)
  if (main === undefined || !folders) return undefined
  const commit = tip ?? tipOf(refs, folders, branch)
  return commit === undefined ? undefined : { checkout, main, folders, head: refs.head(folders), tip: commit }
}

/** What a span of the branch is measured from. */
export const branchOf = ({ checkout, head, tip }: Repository) => ({
  tip,
  base: checkout.base,
  ...(checkout.landedTip !== undefined && { landedTip: checkout.landedTip }),
  ...(head.commit !== undefined && { head: head.commit }),
  ...(checkout.left !== undefined && { left: checkout.left }),
})
