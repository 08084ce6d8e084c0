import type { LeftPath } from '../../agent/contract.js'
import { emptyTree, type ScratchRepo } from './scratch-repo.js'
import { pairsBetween } from './tree-diff.js'

/** A conversation's branch and its relation to the main line. */
export interface Branch {
  readonly tip: string
  /** The recorded commit of the main line that it is based on. */
  readonly base: string
  /** The tip that landed last. */
  readonly landedTip?: string
  /** HEAD of the main checkout; absent before its first commit. */
  readonly head?: string
  /** Paths that landings skipped, each outstanding since its own commit. */
  readonly left?: readonly LeftPath[]
}

/** The beginning of work: the tree to compare with, and the commit since which each path is part of it. */
export interface Span {
  readonly from: string
  readonly since: (path: string) => string
}

/** The commit at which the branch left main; for a branch merged into main since, its recorded base. */
export const forkPoint = async (scratch: ScratchRepo, { tip, base, head }: Branch): Promise<string> => {
  const shared = head === undefined ? undefined : await scratch.mergeBase(head, tip)
  if (shared !== undefined && shared !== tip) return shared
  if (await scratch.contains(tip, base)) return base
  return shared ?? emptyTree(tip)
}

/** Everything since the branch left main. */
export const wholeSpan = async (scratch: ScratchRepo, branch: Branch): Promise<Span> => {
  const from = await forkPoint(scratch, branch)
  return { from, since: () => from }
}

/**
 * The outstanding work of a branch: everything since the last landed tip, or since it left main if it was rewritten,
 * and the paths that landings skipped.
 */
export const outstandingSpan = async (scratch: ScratchRepo, branch: Branch): Promise<Span> => {
  const { landedTip, tip, left = [] } = branch
  if (landedTip === undefined || !(await scratch.contains(tip, landedTip))) return wholeSpan(scratch, branch)
  if (left.length === 0) return { from: landedTip, since: () => landedTip }
  const starts = new Map<string, string>()
  for (const commit of new Set(left.map(({ from }) => from))) {
    starts.set(commit, (await scratch.contains(tip, commit)) ? commit : await forkPoint(scratch, branch))
  }
  const since = new Map(left.map(({ path, from }) => [path, starts.get(from)!]))
  return { from: await treeBefore(scratch, landedTip, since), since: path => since.get(path) ?? landedTip }
}

/** The tree of a commit with some paths as in earlier commits. */
const treeBefore = async (
  scratch: ScratchRepo,
  landedTip: string,
  since: ReadonlyMap<string, string>,
): Promise<string> => {
  const index = 'span'
  await scratch.git(['read-tree', landedTip], { index })
  const zero = '0'.repeat(landedTip.length)
  for (const start of new Set(since.values())) {
    const input = [...(await pairsBetween(scratch, start, { tree: landedTip }))]
      .filter(([path]) => since.get(path) === start)
      .map(([path, { before }]) => (before ? `${before.mode} ${before.id}\t${path}\0` : `0 ${zero}\t${path}\0`))
    if (input.length > 0)
      await scratch.git(['update-index', '--replace', '-z', '--index-info'], { index, input: input.join('') })
  }
  return (await scratch.git(['write-tree'], { index })).text.trim()
}
