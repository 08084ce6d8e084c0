import { emptyTree, type Bench } from './bench.js'

/** Where a conversation's branch stands against the main line. */
export interface Branch {
  readonly tip: string
  /** The commit of the main line it sits on, as written down. */
  readonly base: string
  /** The tip that landed last. */
  readonly landedTip?: string
  /** HEAD of the main checkout; none before its first commit. */
  readonly head?: string
}

/** Where the branch left main. A branch that main took in since is counted from its written base. */
export const forkPoint = async (bench: Bench, { tip, base, head }: Branch): Promise<string> => {
  const shared = head === undefined ? undefined : await bench.mergeBase(head, tip)
  if (shared !== undefined && shared !== tip) return shared
  if (await bench.contains(tip, base)) return base
  return shared ?? emptyTree(tip)
}

/** What of the branch is still to land begins: at the last landed tip, or where it left main when it was rewritten. */
export const outstandingFrom = async (bench: Bench, branch: Branch): Promise<string> => {
  const { landedTip, tip } = branch
  if (landedTip !== undefined && await bench.contains(tip, landedTip)) return landedTip
  return forkPoint(bench, branch)
}
