import { refuse } from '../../../sdk/index.js'
import { shownName } from '../../../sdk/node/byte-names.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import type { LandChoice, LandPath } from '../contract.js'
import type { Plan, Take } from './plan.js'
import type { TreeChange } from '../work/tree-diff.js'

/** A person's choice for a change of one repository; undefined: lands unless it has a conflict. */
export type Choose = (change: TreeChange) => Take | undefined

/** The choices of a person, path by path. */
export interface Wishes {
  /** All named paths, by repository. */
  readonly named: ReadonlyMap<string, ReadonlySet<string>>
  readonly choose: (repo: string) => Choose
  /**
   * Checks the named paths against the plans: refuses paths that are not outstanding, or cannot take the chosen
   * version.
   */
  readonly check: (plans: ReadonlyMap<string, Plan>) => void
}

const nameOf = (path: string): string => segmentsOf(path, { existing: true }).join('/')

/** Parses `only` and `choices`; undefined if neither is given. */
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
    if (ofRepo.has(name)) refuse('invalid', `choices name ${path} of ${repo} twice: expected one choice for each path`)
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
    return change => {
      const path = shownName(change.path)
      return landing && !landing.has(path) ? 'skip' : takes.get(repo)?.get(path)
    }
  }
  const check = (plans: ReadonlyMap<string, Plan>): void => {
    for (const [repo, paths] of named) {
      const plan = plans.get(repo)
      const owed = new Map(
        plan?.changes.flatMap(change =>
          plan.there.has(change.path) ? [] : [[shownName(change.path), change] as const],
        ),
      )
      const stuck = new Set(plan?.blocked.map(({ path }) => path))
      for (const path of paths) {
        if (!owed.has(path))
          refuse('unprocessable', `${path} of ${repo} is not outstanding: name paths of the diff that have not landed`)
        const take = takes.get(repo)?.get(path)
        if (take !== undefined && alone && choose(repo)(owed.get(path)!) !== take) {
          refuse(
            'unprocessable',
            `a choice names ${path} of ${repo}, which is missing in only: expected it in both, or in one of them`,
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
