/** What may be done in a folder: look, or also work. */
export type Access = 'read' | 'work'

/**
 * A folder by its real location, as a path from the workspace root (`.` for the root), and what may be done in it and
 * below.
 */
export interface ReachFolder {
  path: string
  access: Access
}

/** How far a caller reaches in the workspace; undefined: everywhere, empty: nowhere. Every path is a real location. */
export type Reach = readonly ReachFolder[] | undefined

/** How much of a repository lies inside. */
export type Cover = 'all' | 'part' | 'none'

const RANK: { readonly [access in Access]: number } = { read: 1, work: 2 }

/** Whether a path is a folder itself or lies below it. */
export const isWithin = (folder: string, path: string): boolean =>
  folder === '.' || path === folder || path.startsWith(`${folder}/`)

/** The path of a repository from the workspace root. */
export const pathOfRepo = (repo: string): string => (repo === 'root' ? '.' : repo)

/** The folders of several areas as one reach: those that another one gives already are left out. */
export const reachOf = (folders: readonly ReachFolder[]): readonly ReachFolder[] => {
  const best = new Map<string, Access>()
  for (const { path, access } of folders) if (RANK[access] > rankOf(best.get(path))) best.set(path, access)
  const given = ([path, access]: [string, Access]) =>
    [...best].some(([other, more]) => other !== path && isWithin(other, path) && RANK[more] >= RANK[access])
  return [...best]
    .filter(each => !given(each))
    .map(([path, access]) => ({ path, access }))
    .sort(byPath)
}

/** What two reaches both give; of a folder that lies in another the inner one, with the lesser access. */
export const commonReach = (one: Reach, other: Reach): Reach => {
  if (!one || !other) return one ?? other
  return reachOf(
    one.flatMap(a =>
      other.flatMap((b): ReachFolder[] => {
        if (!isWithin(a.path, b.path) && !isWithin(b.path, a.path)) return []
        const path = isWithin(a.path, b.path) ? b.path : a.path
        return [{ path, access: a.access === 'work' && b.access === 'work' ? 'work' : 'read' }]
      }),
    ),
  )
}

/** The most that may be done at a path; undefined: it does not exist for the caller. */
export const accessTo = (reach: Reach, path: string): Access | undefined => {
  if (!reach) return 'work'
  const around = reach.filter(folder => isWithin(folder.path, path))
  return around.some(({ access }) => access === 'work') ? 'work' : around[0]?.access
}

/** Whether a path may be looked at, or worked on. */
export const allows = (reach: Reach, path: string, access: Access): boolean =>
  rankOf(accessTo(reach, path)) >= RANK[access]

/** Whether a folder is listed: it lies inside, or on the way down to what does. */
export const leads = (reach: Reach, path: string): boolean =>
  accessTo(reach, path) !== undefined || reach!.some(folder => isWithin(path, folder.path))

/** How much of a repository may be looked at, by its id. */
export const covers = (reach: Reach, repo: string): Cover => {
  const path = pathOfRepo(repo)
  if (accessTo(reach, path) !== undefined) return 'all'
  return leads(reach, path) ? 'part' : 'none'
}

const rankOf = (access: Access | undefined): number => (access === undefined ? 0 : RANK[access])

const byPath = (one: ReachFolder, other: ReachFolder): number =>
  one.path < other.path ? -1 : one.path > other.path ? 1 : 0
