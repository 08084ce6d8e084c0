import { lstatSync, readdirSync } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { git, GitFailure } from '../programs/git.js'
import { readPlain } from '../files/files.js'
import { contains } from '../files/paths.js'
import { DEPENDENCY_FOLDERS, NOT_SEARCHED, SEARCH_DEPTH } from './folders-with-git.js'
import { below, pathOf, type MainRepository } from './main-repository.js'

/** Where the workspace and the daemon's own files are. */
export interface WorkspaceFolders {
  readonly workspace: string
  readonly data: string
}

/** What the workspace holds now. */
export interface FoundRepositories {
  /** Every repository that has a commit, parents first; two checkouts of one repository count once. */
  readonly repositories: MainRepository[]
  /** Folders with the name of dependencies, as paths from the workspace root. */
  readonly named: readonly string[]
}

/** A folder of the workspace as it was read; while its stamp is the same, so is what it holds. */
interface Folder {
  readonly stamp: string
  readonly git: boolean
  readonly inner: readonly string[]
  readonly named: readonly string[]
}

/** What git said of a repository's ignored folders when it was last asked about all of them. */
interface Ignored {
  readonly folders: ReadonlySet<string>
  readonly dependencies: readonly string[]
  /** What it said of some of them, and what that hung on. */
  last?: { readonly rules: string; readonly folders: readonly string[] } | undefined
}

const MAX_FOLDERS = 20_000
const MAX_REPOSITORIES = 50
const MAX_DEPENDENCIES = 50
const MAX_NAMED = 500
/**
 * What changed less long ago may have changed again in the same tick of its file system's clock: fine ones tick with
 * the kernel.
 */
const FINE_MS = 100
const COARSE_MS = 2_000
const BATCH = 200

const EMPTY: Folder = { stamp: '', git: false, inner: [], named: [] }

const stampOf = (path: string): { stamp: string; racy: boolean } | undefined => {
  try {
    const { dev, ino, ctimeNs } = lstatSync(path, { bigint: true })
    const age = Date.now() - Number(ctimeNs / 1_000_000n)
    return { stamp: `${dev} ${ino} ${ctimeNs}`, racy: age < (ctimeNs % 1_000_000n === 0n ? COARSE_MS : FINE_MS) }
  } catch {
    return undefined
  }
}

const readFolder = (path: string, stamp: string): Folder => {
  const found = { stamp, git: false, inner: [] as string[], named: [] as string[] }
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.name === '.git') found.git = !entry.isSymbolicLink()
      else if (!entry.isDirectory()) continue
      else if (DEPENDENCY_FOLDERS.has(entry.name)) found.named.push(entry.name)
      else if (!NOT_SEARCHED.has(entry.name)) found.inner.push(entry.name)
    }
  } catch {
    return EMPTY
  }
  return found
}

/** A repository as git reported it, and what its files held then. */
interface Asked {
  /** Undefined: it has to be asked again. */
  readonly mark: string | undefined
  readonly repository: MainRepository
}

const COMMIT = /^[0-9a-f]{40,64}\n?$/
const BRANCH = /^ref: (refs\/heads\/[^\0]+)\n$/
const MOST_PACKED = 1024 * 1024

/**
 * All that decides where a checkout stands, read without git: while it is the same, so is git's answer. Undefined where
 * the files do not say the same as git did, such as with refs in a table.
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

/** Asks git about a path. */
const repositoryAt = async (
  { workspace, data }: WorkspaceFolders,
  repo: string,
): Promise<MainRepository | undefined> => {
  const dir = join(workspace, pathOf(repo))
  if ((await realpath(dir).catch(() => undefined)) !== dir) return undefined
  if (!(await lstat(join(dir, '.git')).catch(() => undefined))) return undefined
  // rev-parse reads refs and settings and starts no program, so it needs no wall.
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
  // A pointer that a turn wrote must not lead into the daemon's own files.
  if (contains(data, common) && !contains(join(data, 'gitdirs'), common)) return undefined
  return { repo, dir, gitdir, common, head }
}

/**
 * Finds the repositories of the workspace and their untracked dependencies.
 *
 * A folder is read again only when its stamp moved, so a look at a workspace that stayed as it was reads no folder.
 */
export class RepositoryScan {
  readonly #where: WorkspaceFolders
  #folders: ReadonlyMap<string, Folder> = new Map()
  /** By common git dir. */
  readonly #ignored = new Map<string, Ignored>()
  /** By name. */
  #asked = new Map<string, Asked>()
  #last: readonly MainRepository[] = []

  constructor(where: WorkspaceFolders) {
    this.#where = where
  }

  /** What the workspace holds now. */
  async now(): Promise<FoundRepositories> {
    const { gits, named } = await this.#walk()
    const asked = await Promise.all(gits.map(path => this.#ask(path || 'root')))
    this.#asked = new Map(asked.flatMap(found => (found ? [[found.repository.repo, found]] : [])))
    const commons = new Set<string>()
    const repositories = asked.flatMap(found => {
      if (!found || commons.has(found.repository.common)) return []
      commons.add(found.repository.common)
      return [found.repository]
    })
    this.#last = repositories
    return { repositories, named }
  }

  /** The repository at a path, when it has a commit and its git dir is one the sandbox may use. */
  async at(repo: string): Promise<MainRepository | undefined> {
    const found = await this.#ask(repo)
    if (found) this.#asked.set(repo, found)
    return found?.repository
  }

  /** Asks git only when something moved since it was asked. */
  async #ask(repo: string): Promise<Asked | undefined> {
    const known = this.#asked.get(repo)
    if (known?.mark !== undefined && markOf(known.repository) === known.mark) {
      const { dir } = known.repository
      if ((await realpath(dir).catch(() => undefined)) === dir) return known
    }
    const repository = await repositoryAt(this.#where, repo)
    return repository && { repository, mark: markOf(repository) }
  }

  /** Whether there is a repository to work in; where one was seen before, a glance at it is enough. */
  async some(): Promise<boolean> {
    const still = this.#last.some(({ dir }) => stampOf(join(dir, '.git')))
    return still || (await this.now()).repositories.length > 0
  }

  /** The untracked dependency folders of a main checkout, as paths from its own root. */
  async dependencies(repository: MainRepository, { repositories, named }: FoundRepositories): Promise<string[]> {
    const { dir, repo, common } = repository
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
    const folders = still ?? (await ignoredFolders(dir, asked))
    if (!still) known.last = rules === undefined ? undefined : { rules, folders }
    return this.#real(
      dir,
      asked.filter(path => folders.includes(path)),
    )
  }

  /**
   * Asks git about every folder of a main checkout: the answer is right, and takes as long as the checkout is large.
   */
  async study({ dir, common }: MainRepository): Promise<string[]> {
    const folders = await ignoredFolders(dir, [])
    const dependencies = await this.#real(
      dir,
      folders.filter(path => DEPENDENCY_FOLDERS.has(path.split('/').at(-1) ?? '')),
    )
    const last = this.#ignored.get(common)?.last
    this.#ignored.set(common, { folders: new Set(folders.slice(0, MAX_FOLDERS)), dependencies, last })
    return dependencies
  }

  async #real(dir: string, paths: readonly string[]): Promise<string[]> {
    const found: string[] = []
    for (const path of paths) {
      if ((await realpath(join(dir, path)).catch(() => undefined)) === join(dir, path)) found.push(path)
      if (found.length === MAX_DEPENDENCIES) break
    }
    return found
  }

  /** Goes through the folders level by level; below the depth of repositories what git ignores is left out. */
  async #walk(): Promise<{ gits: string[]; named: string[] }> {
    const { workspace } = this.#where
    const ignored = this.#ignoredPaths()
    const folders = new Map<string, Folder>()
    const gits: string[] = []
    const named: string[] = []
    let level: readonly { path: string; ignored: boolean }[] = [{ path: '', ignored: false }]
    for (let depth = 0; level.length > 0; depth++) {
      const next: { path: string; ignored: boolean }[] = []
      for (const { path, ignored: below } of level) {
        if (folders.size === MAX_FOLDERS) break
        const folder = this.#folder(join(workspace, path), path)
        folders.set(path, folder)
        if (folders.size % BATCH === 0) await new Promise<void>(resolve => setImmediate(resolve))
        if (folder.git && depth <= SEARCH_DEPTH && gits.length < MAX_REPOSITORIES) gits.push(path)
        const at = (name: string) => (path ? `${path}/${name}` : name)
        for (const name of folder.named) named.push(at(name))
        // A repository may lie in a folder that the one around it ignores.
        const shut = !folder.git && (below || ignored.has(path))
        if (depth < SEARCH_DEPTH || !shut) for (const name of folder.inner) next.push({ path: at(name), ignored: shut })
      }
      level = next
    }
    this.#folders = folders
    return { gits, named }
  }

  #folder(place: string, path: string): Folder {
    const now = stampOf(place)
    if (!now) return EMPTY
    const known = this.#folders.get(path)
    if (known?.stamp === now.stamp) return known
    // The stamp is older than what is read: a change in between shows in the next one.
    return readFolder(place, now.racy ? '' : now.stamp)
  }

  #ignoredPaths(): ReadonlySet<string> {
    const paths = this.#last.map(({ repo, common }) =>
      [...(this.#ignored.get(common)?.folders ?? [])].map(path => join(pathOf(repo), path)),
    )
    return new Set(paths.flat())
  }
}

/**
 * All that decides which of these folders git ignores; undefined where rules lie elsewhere too, or while a change may
 * go unseen because it came in the same tick of the file system's clock.
 */
const rulesOf = ({ dir, gitdir, common }: MainRepository, asked: readonly string[]): string | undefined => {
  const config = readPlain(join(common, 'config'))
  if (config === undefined || /excludesfile|include|worktreeconfig/i.test(config)) return undefined
  const around = asked.flatMap(path => path.split('/').map((_, depth, parts) => parts.slice(0, depth).join('/')))
  const ignores = [...new Set(around)].map(folder => join(dir, folder, '.gitignore'))
  const stamps = [join(gitdir, 'index'), join(common, 'info/exclude'), ...ignores].map(stampOf)
  if (stamps.some(stamp => stamp?.racy)) return undefined
  return JSON.stringify([asked, config, stamps.map(stamp => stamp?.stamp)])
}

/** The untracked folders that git ignores as a whole, of these or of all. */
const ignoredFolders = async (dir: string, paths: readonly string[]): Promise<string[]> => {
  // Only names are listed: no content is read, so no filter of the repository runs.
  const args = [
    'ls-files',
    '--others',
    '--ignored',
    '--exclude-standard',
    '--directory',
    '-z',
    ...(paths.length ? ['--', ...paths] : []),
  ]
  const { text } = await git(dir, args, { env: { GIT_LITERAL_PATHSPECS: '1' } })
  return text.split('\0').flatMap(entry => (entry.endsWith('/') ? [entry.slice(0, -1)] : []))
}
