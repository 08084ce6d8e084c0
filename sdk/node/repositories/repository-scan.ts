import { lstatSync } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { git, GitFailure } from '../programs/git.js'
import { readPlain } from '../files/files.js'
import { contains } from '../files/paths.js'
import { gitdirsIn } from '../wall/gitdirs.js'
import { knownFolder, type ReadFolder } from './read-folder.js'
import { stateStamp } from './state-stamp.js'
import { DEPENDENCY_FOLDERS, SEARCH_DEPTH } from './folders-with-git.js'
import { below, pathOf, type MainRepository } from './main-repository.js'
import { absentSubmodules, submoduleCheckouts } from './submodules.js'

/** The workspace and the daemon's data folder. */
export interface WorkspaceFolders {
  readonly workspace: string
  readonly data: string
}

/** The repositories of the workspace. */
export interface FoundRepositories {
  /** All repositories with a commit, parents first; two checkouts of one repository count once. */
  readonly repositories: MainRepository[]
  /** Folders with a name of dependency folders, as paths from the workspace root. */
  readonly named: readonly string[]
}

/** Git's last answer about all ignored folders of a repository. */
interface Ignored {
  readonly folders: ReadonlySet<string>
  readonly dependencies: readonly string[]
  /** Git's last answer about some of them, and the rules that it depended on. */
  last?: { readonly rules: string; readonly folders: readonly string[] } | undefined
}

const MAX_FOLDERS = 20_000
const MAX_REPOSITORIES = 50
const MAX_DEPENDENCIES = 50
const MAX_NAMED = 500
const BATCH = 200

/** A repository as git reported it, with the state of its files then. */
interface Asked {
  /** Undefined: git must be asked again. */
  readonly mark: string | undefined
  readonly repository: MainRepository
}

const COMMIT = /^[0-9a-f]{40,64}\n?$/
const BRANCH = /^ref: (refs\/heads\/[^\0]+)\n$/
const MOST_PACKED = 1024 * 1024

/**
 * The state of the files that determine a checkout's commit, read without git; git's answer is valid while it is
 * unchanged. Undefined if the files do not show what git reported, such as with reftable.
 */
const markOf = ({ dir, gitdir, common, head: told }: MainRepository): string | undefined => {
  const link = join(dir, '.git')
  const found = lstatSync(link, { throwIfNoEntry: false })
  const head = readPlain(join(gitdir, 'HEAD'))
  if (!found || head === undefined) return undefined
  const branch = BRANCH.exec(head)?.[1]
  const commit = branch === undefined ? head : commitOf(common, branch)
  if (!commit || !COMMIT.test(commit) || commit.trim() !== told) return undefined
  return JSON.stringify([
    found.isFile() ? readPlain(link) : [found.dev, found.ino],
    readPlain(join(gitdir, 'commondir')),
    branch,
  ])
}

const commitOf = (common: string, branch: string): string | undefined => {
  if (branch.split('/').includes('..')) return undefined
  return (
    readPlain(join(common, branch))
    ?? readPlain(join(common, 'packed-refs'), MOST_PACKED)
      ?.split('\n')
      .find(line => line.endsWith(` ${branch}`))
      ?.split(' ')[0]
  )
}

/** Asks git for the repository at a path. */
const repositoryAt = async (
  { workspace, data }: WorkspaceFolders,
  repo: string,
): Promise<MainRepository | undefined> => {
  const dir = join(workspace, pathOf(repo))
  if ((await realpath(dir).catch(() => undefined)) !== dir) return undefined
  if (!(await lstat(join(dir, '.git')).catch(() => undefined))) return undefined
  // Needs no wall: rev-parse reads refs and settings and starts no program.
  const answer = await git(dir, ['rev-parse', '--git-dir', '--git-common-dir', 'HEAD^{commit}']).catch(
    (error: unknown) => {
      if (error instanceof GitFailure) return undefined
      throw error
    },
  )
  const [own = '', shared = '', head = ''] = answer?.text.trim().split('\n') ?? []
  const real = (path: string) => realpath(resolve(dir, path)).catch(() => undefined)
  const [gitdir, common] = await Promise.all([real(own), real(shared)])
  if (!answer || !gitdir || !common) return undefined
  // A `.git` pointer written by a turn must not lead into the daemon's files.
  if (contains(data, common) && !contains(gitdirsIn(data), common)) return undefined
  return { repo, dir, gitdir, common, head }
}

/**
 * Finds the repositories of the workspace and their untracked dependencies.
 *
 * Reads a folder only if its stamp changed; scanning an unchanged workspace reads none.
 */
export class RepositoryScan {
  readonly #where: WorkspaceFolders
  #folders: ReadonlyMap<string, ReadFolder> = new Map()
  /** By common git dir. */
  readonly #ignored = new Map<string, Ignored>()
  /** By name. */
  #asked = new Map<string, Asked>()
  #last: readonly MainRepository[] = []

  constructor(where: WorkspaceFolders) {
    this.#where = where
  }

  /** The repositories of the workspace. */
  async now(): Promise<FoundRepositories> {
    const { gits, named } = await this.#walk()
    const modules = await submoduleCheckouts(this.#where.workspace, gits)
    const all = [...gits, ...modules].slice(0, MAX_REPOSITORIES)
    const asked = await Promise.all(all.map(path => this.#ask(path || 'root')))
    this.#asked = new Map(asked.flatMap(found => (found ? [[found.repository.repo, found]] : [])))
    const commons = new Set<string>()
    const repositories = asked.flatMap(found => {
      if (!found || commons.has(found.repository.common)) return []
      commons.add(found.repository.common)
      return [found.repository]
    })
    for (const absent of await absentSubmodules(this.#where.workspace, repositories)) {
      if (commons.has(absent.common) || repositories.length >= MAX_REPOSITORIES) continue
      commons.add(absent.common)
      repositories.push(absent)
    }
    this.#last = repositories
    return { repositories, named }
  }

  /** The repository at a path, if it has a commit and a git dir that the sandbox may use. */
  async at(repo: string): Promise<MainRepository | undefined> {
    const found = await this.#ask(repo)
    if (found) this.#asked.set(repo, found)
    if (found || repo === 'root') return found?.repository
    const { repositories } = await this.now()
    return repositories.find(each => each.repo === repo)
  }

  /** Asks git only if the files changed since its last answer. */
  async #ask(repo: string): Promise<Asked | undefined> {
    const known = this.#asked.get(repo)
    if (known?.mark !== undefined && markOf(known.repository) === known.mark) {
      const { dir } = known.repository
      if ((await realpath(dir).catch(() => undefined)) === dir) return known
    }
    const repository = await repositoryAt(this.#where, repo)
    return repository && { repository, mark: markOf(repository) }
  }

  /** Whether the workspace has a repository; only checks one found before, if there is one. */
  async some(): Promise<boolean> {
    const still = this.#last.some(({ dir }) => stateStamp(join(dir, '.git')))
    return still || (await this.now()).repositories.length > 0
  }

  /** The untracked dependency folders of a main checkout, as paths from its root. */
  async dependencies(repository: MainRepository, { repositories, named }: FoundRepositories): Promise<string[]> {
    const { dir, repo, common, module } = repository
    if (module !== undefined) return []
    const known = this.#ignored.get(common)
    if (!known) return this.study(repository)
    const others = repositories
      .map(other => pathOf(other.repo))
      .filter(path => path !== '' && below(repo, path) && path !== pathOf(repo))
    const own = named
      .filter(path => !others.some(other => contains(other, path)))
      .flatMap(path => below(repo, path) ?? [])
    const asked = [...new Set([...known.dependencies, ...own])].slice(0, MAX_NAMED)
    if (asked.length === 0) return []
    const rules = rulesOf(repository, asked)
    const still = rules !== undefined && known.last?.rules === rules ? known.last.folders : undefined
    const folders = still ?? (await this.#ignoredFolders(repository, asked))
    if (!still) known.last = rules === undefined ? undefined : { rules, folders }
    return this.#real(
      dir,
      asked.filter(path => folders.includes(path)),
    )
  }

  /** Asks git about all folders of a main checkout: exact, but slow for a large one. */
  async study(repository: MainRepository): Promise<string[]> {
    const { dir, common, module } = repository
    if (module !== undefined) return []
    const folders = await this.#ignoredFolders(repository, [])
    const dependencies = await this.#real(
      dir,
      folders.filter(path => DEPENDENCY_FOLDERS.has(path.split('/').at(-1) ?? '')),
    )
    const last = this.#ignored.get(common)?.last
    this.#ignored.set(common, { folders: new Set(folders.slice(0, MAX_FOLDERS)), dependencies, last })
    return dependencies
  }

  /** The untracked folders that git ignores completely, among these or all. */
  async #ignoredFolders({ dir, common }: MainRepository, paths: readonly string[]): Promise<string[]> {
    const { workspace, data } = this.#where
    const args = [
      'ls-files',
      '--others',
      '--ignored',
      '--exclude-standard',
      '--directory',
      '-z',
      ...(paths.length ? ['--', ...paths] : []),
    ]
    // A turn may have written the index that git reads.
    const wall = { workspace, data, exposed: contains(data, common) ? [common] : [], sealed: true, offline: true }
    const how = { wall, priority: 'own', env: { GIT_LITERAL_PATHSPECS: '1' } } as const
    const { text } = await git(dir, args, how).catch((error: unknown) => {
      // One that git cannot read keeps nobody from work: the files of a private copy come from commits.
      if (error instanceof GitFailure) return { text: '' }
      throw error
    })
    return text.split('\0').flatMap(entry => (entry.endsWith('/') ? [entry.slice(0, -1)] : []))
  }

  async #real(dir: string, paths: readonly string[]): Promise<string[]> {
    const found: string[] = []
    for (const path of paths) {
      if ((await realpath(join(dir, path)).catch(() => undefined)) === join(dir, path)) found.push(path)
      if (found.length === MAX_DEPENDENCIES) break
    }
    return found
  }

  /** Walks the folders level by level; below the search depth of repositories skips folders that git ignores. */
  async #walk(): Promise<{ gits: string[]; named: string[] }> {
    const { workspace } = this.#where
    const ignored = this.#ignoredPaths()
    const folders = new Map<string, ReadFolder>()
    const gits: string[] = []
    const named: string[] = []
    let level: readonly { path: string; ignored: boolean }[] = [{ path: '', ignored: false }]
    for (let depth = 0; level.length > 0; depth++) {
      const next: { path: string; ignored: boolean }[] = []
      for (const { path, ignored: below } of level) {
        if (folders.size === MAX_FOLDERS) break
        const folder = knownFolder(this.#folders, join(workspace, path), path)
        folders.set(path, folder)
        if (folders.size % BATCH === 0) await new Promise<void>(resolve => setImmediate(resolve))
        if (folder.git && depth <= SEARCH_DEPTH && gits.length < MAX_REPOSITORIES) gits.push(path)
        const at = (name: string) => (path ? `${path}/${name}` : name)
        for (const name of folder.named) named.push(at(name))
        // A repository may lie in a folder that its parent repository ignores.
        const shut = !folder.git && (below || ignored.has(path))
        if (depth < SEARCH_DEPTH || !shut) for (const name of folder.inner) next.push({ path: at(name), ignored: shut })
      }
      level = next
    }
    this.#folders = folders
    return { gits, named }
  }

  #ignoredPaths(): ReadonlySet<string> {
    const paths = this.#last.map(({ repo, common }) =>
      [...(this.#ignored.get(common)?.folders ?? [])].map(path => join(pathOf(repo), path)),
    )
    return new Set(paths.flat())
  }
}

/**
 * The state of the files that determine which of these folders git ignores; undefined if other files have rules too, or
 * if a change could have the same timestamp.
 */
const rulesOf = ({ dir, gitdir, common }: MainRepository, asked: readonly string[]): string | undefined => {
  const config = readPlain(join(common, 'config'))
  if (config === undefined || /excludesfile|include|worktreeconfig/i.test(config)) return undefined
  const around = asked.flatMap(path => path.split('/').map((_, depth, parts) => parts.slice(0, depth).join('/')))
  const ignores = [...new Set(around)].map(folder => join(dir, folder, '.gitignore'))
  const stamps = [join(gitdir, 'index'), join(common, 'info/exclude'), ...ignores].map(stateStamp)
  if (stamps.some(stamp => stamp?.racy)) return undefined
  return JSON.stringify([asked, config, stamps.map(stamp => stamp?.stamp)])
}
