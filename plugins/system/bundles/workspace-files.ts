import { lstat, readdir, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { git } from '../../../sdk/node/programs/git.js'
import { foldersWithGit } from '../../../sdk/node/repositories/folders-with-git.js'
import type { WallSpec } from '../../../sdk/node/wall/wall.js'

/** A repository of the workspace. */
export interface FoundRepository {
  /** `root`, or its path from the workspace root. */
  readonly repo: string
  readonly dir: string
}

/** A file or link of the workspace that tools do not generate. */
export interface FoundFile {
  /** From the workspace root. */
  readonly path: string
  readonly size: number
  /** Where it leads, when it is a link. */
  readonly link?: string
}

/** Folders that tools generate again. */
const MADE = new Set(['node_modules', '.venv', '__pycache__', '.cache', '.tox', '.next', '.gradle', '.git'])
const CONFIG = '.sandbox/config'
/** A bundle also finds repositories that no private copy has. */
const DEEPEST = 6
const AT_ONCE = 32
const MOST_LIST = 256 * 1024 * 1024

/** The path of something in a repository, from the workspace root. */
const within = (repo: string, path: string): string => (repo === 'root' ? path : path === '' ? repo : `${repo}/${path}`)

/** The repositories of a workspace, parents first. */
export const findRepositories = async (workspace: string): Promise<FoundRepository[]> => {
  const found: FoundRepository[] = []
  for await (const path of foldersWithGit(workspace, DEEPEST)) {
    const dir = join(workspace, path)
    // A folder named .git that git does not recognize is not a repository; git would name an outer one.
    if (await isRepository(dir)) found.push({ repo: path || 'root', dir })
  }
  return found.sort((one, other) =>
    one.repo === 'root' ? -1 : other.repo === 'root' ? 1 : one.repo < other.repo ? -1 : 1,
  )
}

const isRepository = async (dir: string): Promise<boolean> => {
  const answer = await git(dir, ['rev-parse', '--show-toplevel'], { ok: [0, 128] }).catch(() => undefined)
  return answer?.code === 0 && answer.text.trim() === (await realpath(dir).catch(() => ''))
}

/** What to survey: the whole workspace, or some of its repositories. */
export interface Survey {
  readonly workspace: string
  readonly wall: Omit<WallSpec, 'cwd' | 'env'>
  readonly repositories: readonly FoundRepository[]
  readonly whole: boolean
}

/**
 * Every file to pack: files that git does not ignore, files outside repositories that tools did not generate, and the
 * configuration.
 */
export const findFiles = async ({ workspace, wall, repositories, whole }: Survey): Promise<FoundFile[]> => {
  const paths = new Set<string>()
  for (const { repo, dir } of repositories) for (const path of await listed(dir, wall)) paths.add(within(repo, path))
  const rootless = whole && !repositories.some(({ repo }) => repo === 'root')
  if (rootless) for (const path of await walked(workspace, '', repositories)) paths.add(path)
  const owned = [...paths].filter(path => path !== '.sandbox' && !path.startsWith('.sandbox/'))
  const configured =
    whole || repositories.some(({ repo }) => repo === 'root') ? await walked(workspace, CONFIG, []) : []
  return looked(workspace, [...new Set([...owned, ...configured])].sort())
}

/** The files of a repository that git tracks or does not ignore. Other repositories in it are named as folders. */
const listed = async (dir: string, wall: Omit<WallSpec, 'cwd' | 'env'>): Promise<string[]> => {
  const { text } = await git(dir, ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'], {
    wall,
    maxBytes: MOST_LIST,
  })
  return text.split('\0').filter(path => path !== '' && !path.endsWith('/'))
}

const walked = async (workspace: string, from: string, repositories: readonly FoundRepository[]): Promise<string[]> => {
  const own = new Set(repositories.map(({ repo }) => repo))
  const paths: string[] = []
  const walk = async (path: string): Promise<void> => {
    for (const entry of await readdir(join(workspace, path), { withFileTypes: true }).catch(() => [])) {
      const at = path ? `${path}/${entry.name}` : entry.name
      if (!entry.isDirectory()) paths.push(at)
      else if (!MADE.has(entry.name) && at !== '.sandbox' && !own.has(at)) await walk(at)
    }
  }
  // A link in place of the folder leads to files that are not configuration.
  const root = await lstat(join(workspace, from)).catch(() => undefined)
  if (root?.isDirectory()) await walk(from)
  return paths
}

const looked = async (workspace: string, paths: readonly string[]): Promise<FoundFile[]> => {
  const files: FoundFile[] = []
  for (let at = 0; at < paths.length; at += AT_ONCE) {
    files.push(...(await Promise.all(paths.slice(at, at + AT_ONCE).map(path => look(workspace, path)))).flat())
  }
  return files
}

/** Excludes folders, pipes, devices and removed files. */
const look = async (workspace: string, path: string): Promise<FoundFile[]> => {
  if (!path.isWellFormed() || path.includes('\ufffd')) return []
  const found = await lstat(join(workspace, path)).catch(() => undefined)
  if (found?.isFile()) return [{ path, size: found.size }]
  const link = found?.isSymbolicLink() ? await readlink(join(workspace, path)).catch(() => undefined) : undefined
  return link === undefined ? [] : [{ path, size: 0, link }]
}
