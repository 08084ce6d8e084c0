/** A repository of the workspace: `root`, or its path from the workspace root. */
export interface MainRepository {
  readonly repo: string
  /** The main checkout; of a submodule that is not checked out its git dir. */
  readonly dir: string
  /** The real paths of its git dir, and of the one that its worktrees share. */
  readonly gitdir: string
  readonly common: string
  /** The commit that is checked out; of a submodule that is not the one that its parent has recorded. */
  readonly head: string
  /** Only of a submodule that is not checked out: its git dir, as a path from the workspace root. */
  readonly module?: string
}

/** A workspace path relative to a repository; undefined if it is not below it. */
export const below = (repo: string, path: string): string | undefined => {
  const root = pathOf(repo)
  if (root === '') return path
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : undefined
}

/** The folder that holds the repositories of a private copy; undefined: the copy is not there. */
export const copyRootOf = (repos: readonly { readonly repo: string; readonly copy?: string }[]): string | undefined => {
  const found = repos.find(({ copy }) => copy !== undefined)
  const within = found ? pathOf(found.repo) : ''
  return within === '' ? found?.copy : found!.copy!.slice(0, -within.length - 1)
}

/** A repository's path from the workspace root; empty for the root. */
export const pathOf = (repo: string): string => (repo === 'root' ? '' : repo)
