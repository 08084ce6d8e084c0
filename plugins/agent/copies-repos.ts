import { lstat, readdir, readFile, realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { git, GitFailure } from '../../sdk/node/git.js'
import { contains } from '../../sdk/node/paths.js'

/** A repository of the workspace: `root`, or its path from the workspace root. */
export interface Repository {
  readonly repo: string
  /** The main checkout. */
  readonly dir: string
  /** The real path of its common git dir. */
  readonly common: string
  /** The commit the main checkout stands on. */
  readonly head: string
}

/** Where the workspace and the daemon's own files are. */
export interface Ground {
  readonly workspace: string
  readonly data: string
}

/** Folders of untracked dependencies, by name. */
export const DEPENDENCIES: ReadonlySet<string> = new Set(['node_modules', '.venv', 'vendor'])

const SKIPPED = new Set([
  '.git', '.sandbox', ...DEPENDENCIES, 'venv', '__pycache__', 'target', 'dist', 'build', 'out', '.cache', '.next', '.gradle', '.tox',
])
const MAX_DEPTH = 4
const MAX_FOLDERS = 20_000
const MAX_REPOSITORIES = 50
const MAX_DEPENDENCIES = 50

/** A repository's path from the workspace root; empty for the root. */
export const pathOf = (repo: string): string => (repo === 'root' ? '' : repo)

/** The folders at most four levels deep that hold a `.git`, parents first. */
const candidates = async (workspace: string): Promise<string[]> => {
  const found: string[] = []
  let level = ['']
  let seen = 0
  for (let depth = 0; depth <= MAX_DEPTH && level.length > 0; depth++) {
    const next: string[] = []
    for (const path of level) {
      if (++seen > MAX_FOLDERS) return found
      const entries = await readdir(join(workspace, path), { withFileTypes: true }).catch(() => [])
      for (const entry of entries) {
        if (entry.name === '.git' && !entry.isSymbolicLink() && found.length < MAX_REPOSITORIES) found.push(path)
        else if (entry.isDirectory() && !SKIPPED.has(entry.name)) next.push(path ? `${path}/${entry.name}` : entry.name)
      }
    }
    level = next
  }
  return found
}

/** The repository at a path, when it has a commit and its git dir is one the sandbox may use. */
export const repositoryAt = async ({ workspace, data }: Ground, repo: string): Promise<Repository | undefined> => {
  const dir = join(workspace, pathOf(repo))
  if ((await realpath(dir).catch(() => undefined)) !== dir) return undefined
  if (!(await lstat(join(dir, '.git')).catch(() => undefined))) return undefined
  // rev-parse reads refs and settings and starts no program, so it needs no wall.
  const answer = await git(dir, ['rev-parse', '--git-common-dir', 'HEAD^{commit}']).catch((error: unknown) => {
    if (error instanceof GitFailure) return undefined
    throw error
  })
  const [path = '', head = ''] = answer?.text.trim().split('\n') ?? []
  const common = await realpath(resolve(dir, path)).catch(() => undefined)
  if (!answer || !common) return undefined
  // A pointer that a turn wrote must not lead into the daemon's own files.
  if (contains(data, common) && !contains(join(data, 'gitdirs'), common)) return undefined
  return { repo, dir, common, head }
}

/** Every repository of the workspace that has a commit, parents first; two checkouts of one repository count once. */
export const findRepositories = async (ground: Ground): Promise<Repository[]> => {
  const found: Repository[] = []
  const commons = new Set<string>()
  for (const path of await candidates(ground.workspace)) {
    const repository = await repositoryAt(ground, path || 'root')
    if (!repository || commons.has(repository.common)) continue
    commons.add(repository.common)
    found.push(repository)
  }
  return found
}

/** The untracked dependency folders of a main checkout, as paths from its own root. */
export const dependenciesOf = async ({ dir }: Repository): Promise<string[]> => {
  // Only names are listed: no content is read, so no filter of the repository runs.
  const { text } = await git(dir, ['ls-files', '--others', '--ignored', '--exclude-standard', '--directory', '-z'])
  const found: string[] = []
  for (const entry of text.split('\0')) {
    const path = entry.replace(/\/$/, '')
    if (!entry.endsWith('/') || !DEPENDENCIES.has(path.split('/').at(-1) ?? '')) continue
    if ((await realpath(join(dir, path)).catch(() => undefined)) === join(dir, path)) found.push(path)
    if (found.length === MAX_DEPENDENCIES) break
  }
  return found
}

/** The name of a copy's entry among the worktrees of a repository. */
export const entryOf = async (common: string, copy: string): Promise<string | undefined> => {
  const folder = join(common, 'worktrees')
  for (const name of await readdir(folder).catch(() => [])) {
    const target = await readFile(join(folder, name, 'gitdir'), 'utf8').catch(() => '')
    if (target && dirname(target.trim()) === copy) return name
  }
  return undefined
}

/** Entries among the worktrees of a repository whose copy lies below a folder. */
export const entriesBelow = async (common: string, folder: string): Promise<{ name: string; copy: string }[]> => {
  const found: { name: string; copy: string }[] = []
  for (const name of await readdir(join(common, 'worktrees')).catch(() => [])) {
    const target = await readFile(join(common, 'worktrees', name, 'gitdir'), 'utf8').catch(() => '')
    if (target && contains(folder, dirname(target.trim()))) found.push({ name, copy: dirname(target.trim()) })
  }
  return found
}
