import { refuse } from '../../../sdk/index.js'
import { shownName } from '../../../sdk/node/byte-names.js'
import type { ExpectedTips, RepoPaths } from '../contract.js'
import type { ScratchRepo } from './scratch-repo.js'
import { changesBetween } from './tree-diff.js'

const treeOf = async (scratch: ScratchRepo, commit: string): Promise<string> =>
  (await scratch.once(['rev-parse', '--verify', `${commit}^{tree}`])).text.trim()

/** The tip of a branch for callers: its commit, and the tree of the work on top of it that is not committed. */
export const shownTip = async (scratch: ScratchRepo, tip: string, tree: string): Promise<string> =>
  tree === tip || (await treeOf(scratch, tip)) === tree ? tip : `${tip}+${tree}`

/**
 * Whether the work that stands now is what a caller expects: the same tip, or the uncommitted work of an expected one
 * in one commit on top of it.
 *
 * The commit below it counts too: the same tree on another one is another change of the main line.
 */
export const isExpected = async (scratch: ScratchRepo, expected: string, shown: string): Promise<boolean> => {
  if (expected === shown) return true
  const [commit = '', tree] = expected.split('+')
  if (tree === undefined || shown.includes('+')) return false
  const { text } = await scratch.once(['rev-list', '--parents', '-n1', shown])
  return text.trim() === `${shown} ${commit}` && (await treeOf(scratch, shown)) === tree
}

/** The tip that a caller expects of a repository. */
export const expectedOf = (expect: ExpectedTips, repo: string): string | undefined =>
  Object.hasOwn(expect, repo) ? expect[repo] : undefined

const ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

/** The paths that changed since what a caller expected; all if that is not known any more. */
export const pathsMoved = async (
  scratch: ScratchRepo,
  repo: string,
  expected: string | undefined,
  shown: string,
  otherwise: string,
): Promise<string[]> => {
  const [commit = '', tree] = expected?.split('+') ?? []
  const to = shown.split('+').at(-1)!
  for (const from of [tree ?? commit, commit])
    if (ID.test(from) && (await scratch.has(from)))
      return (await changesBetween(scratch, repo, from, to)).map(({ path }) => shownName(path))
  return (await changesBetween(scratch, repo, otherwise, to)).map(({ path }) => shownName(path))
}

/** One repository whose work is other than expected. */
export interface MovedRepo extends RepoPaths {
  /** What the work is now; absent if the conversation has no such repository. */
  readonly tip?: string
}

const NAMED = 5
const LISTED = 200

/** Refuses a yes to work that is other than its caller saw, with the tips that stand now. */
export const refuseUnseen = (
  id: string,
  expect: ExpectedTips,
  moved: readonly MovedRepo[],
  verb: 'land' | 'discard',
): never => {
  const parts = moved.map(({ repo, tip, paths }) => {
    const [before, now] = [expectedOf(expect, repo), tip].map(name =>
      name?.replace(/[0-9a-f]{13,}/g, all => all.slice(0, 12)),
    )
    if (now === undefined) return `it has no repository ${repo}`
    if (before === undefined) return `${repo} has work at ${now}, which expect does not name`
    const named = paths.slice(0, NAMED).join(', ')
    const rest = paths.length > NAMED ? ` and ${paths.length - NAMED} more` : ''
    return `${repo} expected ${before}, found ${now}${named && ` (changed since: ${named}${rest})`}`
  })
  return refuse(
    'conflict',
    `the work of ${id} is not what was seen: ${parts.join('; ')}: look at the diff, then ${verb}`,
    {
      fields: {
        tips: Object.fromEntries(moved.flatMap(({ repo, tip }) => (tip === undefined ? [] : [[repo, tip]]))),
        moved: moved.map(({ repo, paths }) => ({ repo, paths: paths.slice(0, LISTED) })),
      },
    },
  )
}
