/** A repository that was left out of a list. */
export interface SkippedRepo {
  path: string
  reason: string
}
/** The repositories of the workspace. */
export interface RepoList {
  /** Their paths, sorted, without the workspace's own. */
  repos: string[]
  skipped: SkippedRepo[]
}
/** A folder with a manifest that gives it a name. */
export interface NamedModule {
  /** From the root of its repository; empty for that itself. */
  dir: string
  name: string
}
/** The named folders of a repository. */
export interface RepoModules {
  repo: string
  modules: NamedModule[]
}
/** The named folders of every repository. */
export interface ModuleList {
  repos: RepoModules[]
}
/** A package of a workspace of packages. */
export interface WorkspacePackage {
  name: string
  dir: string
  /** The top-level folder of its path. */
  group: string
}
/** One package uses another one. */
export interface PackageEdge {
  from: string
  to: string
  type: 'prod' | 'dev' | 'peer'
}
/** Which packages of a repository use which. */
export interface PackageGraph {
  packages: WorkspacePackage[]
  edges: PackageEdge[]
}

/** A repository: `root`, or its path from the workspace root. */
export type RepoName = string

/** The repositories of the workspace, and the packages in them. */
export interface RepositoryCalls {
  /**
   * List every folder that has a `.git`, sorted, without the workspace's own.
   *
   * It searches 6 levels and at most 50,000 folders, without hidden and ignored ones, `refs` and `public`, and
   * without the contents of found repositories. `skipped` lists those that cannot be used.
   */
  'GET /workspace/repos'(): RepoList

  /** List, for every repository, the folders whose manifest gives them a name, 4 folders deep. */
  'GET /workspace/modules'(): ModuleList

  /**
   * Show the dependencies between packages of a repository, by name, regardless of versions.
   *
   * It reads the definitions of pnpm, npm, yarn, cargo, go and uv. A repository that is not a workspace of packages has
   * none.
   *
   * - 404: no such repository, or outside the caller's areas
   * - 422: a definition or manifest is malformed; the message names the file
   */
  'GET /workspace/repos/{repo}/graph'(input: { repo: RepoName }): PackageGraph
}
