/** The access to a folder: `read`, or `work` (read and write). */
export type Access = 'read' | 'work'

/** A folder's real path from the workspace root (`.` for the root), and the access to it and everything below. */
export interface ReachFolder {
  path: string
  access: Access
}

/** The folders that a caller reaches; undefined: the whole workspace, empty: none. Every path is a real location. */
export type Reach = readonly ReachFolder[] | undefined

/** How much of a repository a caller reaches. */
export type Cover = 'all' | 'part' | 'none'

const RANK: { readonly [access in Access]: number } = { read: 1, work: 2 }

/** Whether a path is the folder itself or below it. */
export const isWithin = (folder: string, path: string): boolean =>
  folder === '.' || path === folder || path.startsWith(`${folder}/`)

/** The path of a repository from the workspace root. */
export const pathOfRepo = (repo: string): string => (repo === 'root' ? '.' : repo)

/** Merges the folders of several areas into one reach; leaves out folders that another one covers. */
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

/** The intersection of two reaches: of nested folders the inner one, with the lesser access. */
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

/** The access to a path; undefined: the path does not exist for the caller. */
export const accessTo = (reach: Reach, path: string): Access | undefined => {
  if (!reach) return 'work'
  const around = reach.filter(folder => isWithin(folder.path, path))
  return around.some(({ access }) => access === 'work') ? 'work' : around[0]?.access
}

/** Whether a reach includes this access to a path. */
export const allows = (reach: Reach, path: string, access: Access): boolean =>
  rankOf(accessTo(reach, path)) >= RANK[access]

/** Whether a folder is listed: it is reached, or an ancestor of a reached folder. */
export const leads = (reach: Reach, path: string): boolean =>
  accessTo(reach, path) !== undefined || reach!.some(folder => isWithin(path, folder.path))

/** How much of a repository a caller may read, by its id. */
export const covers = (reach: Reach, repo: string): Cover => {
  const path = pathOfRepo(repo)
  if (accessTo(reach, path) !== undefined) return 'all'
  return leads(reach, path) ? 'part' : 'none'
}

const rankOf = (access: Access | undefined): number => (access === undefined ? 0 : RANK[access])

const byPath = (one: ReachFolder, other: ReachFolder): number =>
  one.path < other.path ? -1 : one.path > other.path ? 1 : 0
