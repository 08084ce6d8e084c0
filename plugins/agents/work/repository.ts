import type { CheckoutRepo } from '../../agent/contract.js'
import { parkedRef } from '../../../sdk/node/repositories/parked-ref.js'
import { gitFoldersOf, type GitFolders, type Head, type Refs } from './git-folders.js'

/** The current state of one repository of a conversation: its git dirs, main's HEAD and the branch's tip. */
export interface Repository {
  readonly checkout: CheckoutRepo
  readonly main: string
  readonly folders: GitFolders
  /** The private copy's git dir, which may have work that was not imported yet. */
  readonly own?: string
  readonly head: Head
  readonly tip: string
}

/** The commit of a conversation's branch, or of its parked ref. */
export const tipOf = (refs: Refs, folders: GitFolders, branch: string): string | undefined =>
  refs.commit(folders, `refs/heads/${branch}`) ?? refs.commit(folders, parkedRef(branch))

/** The commit of a conversation's branch in its private copy. */
const ownTip = (refs: Refs, gitdir: string, branch: string): string | undefined =>
  refs.commit({ git: gitdir, common: gitdir }, `refs/heads/${branch}`)

/** A checkout without its private copy's git dir, to read only the repository. */
export const takenOver = ({ gitdir: _own, ...checkout }: CheckoutRepo): CheckoutRepo => checkout

/** Reads the state of a repository; undefined if its main checkout or the branch does not exist. */
export const lookAt = (refs: Refs, checkout: CheckoutRepo, branch: string, tip?: string): Repository | undefined => {
  const { main, gitdir } = checkout
  const folders = gitFoldersOf(checkout, main)
  if (main === undefined || !folders) return undefined
  const commit =
    tip ?? (gitdir === undefined ? undefined : ownTip(refs, gitdir, branch)) ?? tipOf(refs, folders, branch)
  return commit === undefined
    ? undefined
    : { checkout, main, folders, head: refs.head(folders), tip: commit, ...(gitdir !== undefined && { own: gitdir }) }
}

/** The commits that the spans of a branch are computed from. */
export const branchOf = ({ checkout, head, tip }: Repository) => ({
  tip,
  base: checkout.base,
  ...(checkout.landedTip !== undefined && { landedTip: checkout.landedTip }),
  ...(head.commit !== undefined && { head: head.commit }),
  ...(checkout.left !== undefined && { left: checkout.left }),
})
