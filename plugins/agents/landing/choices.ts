import { refuse } from '../../../sdk/index.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import type { LandChoice, LandPath } from '../contract.js'
import type { Plan, Take } from './plan.js'
import type { TreeChange } from '../work/tree-diff.js'

/** What a person chose for a change of one repository; undefined: it lands if it fits. */
export type Choose = (change: TreeChange) => Take | undefined

/** What a person asked for path by path. */
export interface Wishes {
  /** Every path that is named, by repository. */
  readonly named: ReadonlyMap<string, ReadonlySet<string>>
  readonly choose: (repo: string) => Choose
  /**
   * The repositories' own plans answer for what is named: refuses what is not outstanding, and what cannot be taken.
   */
  readonly check: (plans: ReadonlyMap<string, Plan>) => void
}

const nameOf = (path: string): string => segmentsOf(path).join('/')

/** Reads choices and the list of what alone is to land; undefined when neither is given. */
export const wishesOf = (
  only: readonly LandPath[] | undefined,
  choices: readonly LandChoice[] = [],
): Wishes | undefined => {
  if (only === undefined && choices.length === 0) return undefined
  const named = new Map<string, Set<string>>()
  const add = (repo: string, path: string) => (named.get(repo) ?? named.set(repo, new Set()).get(repo)!).add(path)
  const takes = new Map<string, Map<string, Take>>()
  for (const { repo, path, take } of choices) {
    const name = nameOf(path)
    const ofRepo = takes.get(repo) ?? takes.set(repo, new Map()).get(repo)!
    if (ofRepo.has(name)) refuse('invalid', `choices name ${path} of ${repo} twice: expected one choice for a path`)
    ofRepo.set(name, take)
    add(repo, name)
  }
  const alone =
    only
    && Map.groupBy(
      only.map(({ repo, path }) => ({ repo, path: nameOf(path) })),
      ({ repo }) => repo,
    )
  for (const { repo, path } of [...(alone?.values() ?? [])].flat()) add(repo, path)
  const choose = (repo: string): Choose => {
    const landing = alone && new Set((alone.get(repo) ?? []).map(({ path }) => path))
    return ({ path }) => (landing && !landing.has(path) ? 'skip' : takes.get(repo)?.get(path))
  }
  const check = (plans: ReadonlyMap<string, Plan>): void => {
    for (const [repo, paths] of named) {
      const plan = plans.get(repo)
      const owed = new Map(
        plan?.changes.flatMap(change => (plan.there.has(change.path) ? [] : [[change.path, change] as const])),
      )
      const stuck = new Set(plan?.blocked.map(({ path }) => path))
      for (const path of paths) {
        if (!owed.has(path))
          refuse('unprocessable', `${path} of ${repo} is not outstanding: name paths of the diff that have not landed`)
        const take = takes.get(repo)?.get(path)
        if (take !== undefined && alone && choose(repo)(owed.get(path)!) !== take) {
          refuse(
            'unprocessable',
            `a choice names ${path} of ${repo}, which only leaves out: expected it in both, or in one alone`,
          )
        }
        if (take === undefined || !stuck.has(path)) continue
        const instead = take === 'agent' ? 'choose workspace or skip' : 'choose workspace'
        refuse(
          'unprocessable',
          `${path} of ${repo} cannot be taken as ${take}: it leads out of the workspace, or something that is no `
            + `file of this repository stands in its way; ${instead}`,
        )
      }
    }
  }
  return { named, choose, check }
}
