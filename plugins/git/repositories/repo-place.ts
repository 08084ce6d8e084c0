import { lstatSync, realpathSync, type Stats } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import { gitdirsIn } from '../../../sdk/node/wall/gitdirs.js'
import { contains } from '../../../sdk/node/files/paths.js'

/** The folders of the workspace and of the daemon's own files. */
export interface DaemonFolders {
  readonly workspace: string
  readonly data: string
}

/** A checkout of the workspace and its git folders; every path is real. */
export interface RepoPlace {
  /** `root`, or its path from the workspace root. */
  readonly repo: string
  readonly dir: string
  /** The git dir of this checkout. */
  readonly gitdir: string
  /** The git dir that all its worktrees share. */
  readonly common: string
}

/** The reason why a folder with a `.git` cannot be used. */
export interface UnreadableRepo {
  readonly error: string
}

const POINTER = /^gitdir: (.+?)\r?\n?$/s

const realOrUndefined = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

/** The status of a path without following links; undefined also if a parent is a file. */
const statusOrUndefined = (path: string): Stats | undefined => {
  try {
    return lstatSync(path)
  } catch {
    return undefined
  }
}

/**
 * Finds the git folders of a checkout by reading files only; undefined: not a checkout.
 *
 * A pointer, a common folder or alternates may only lead into the workspace or to git dirs of the daemon; the
 * workspace's own repository may be elsewhere.
 */
export const repoPlaceAt = (where: DaemonFolders, repo: string): RepoPlace | UnreadableRepo | undefined => {
  const dir = repo === 'root' ? where.workspace : join(where.workspace, repo)
  const dot = join(dir, '.git')
  const found = statusOrUndefined(dot)
  if (realOrUndefined(dir) !== dir || !found || found.isSymbolicLink()) return undefined
  const pointer = found.isFile() ? POINTER.exec(readPlain(dot) ?? '')?.[1] : undefined
  if (found.isFile() && pointer === undefined) return { error: 'its .git file names no folder' }
  const gitdir = realOrUndefined(pointer === undefined ? dot : resolve(dir, pointer))
  if (gitdir === undefined) return { error: 'its .git file names a folder that is not there' }
  const shared = readPlain(join(gitdir, 'commondir'))?.trim()
  const common = shared ? realOrUndefined(isAbsolute(shared) ? shared : resolve(gitdir, shared)) : gitdir
  if (common === undefined) return { error: 'the folder that its worktrees share is not there' }
  const allowed = (path: string): boolean =>
    contains(where.workspace, path)
    || contains(gitdirsIn(where.data), path)
    || (repo === 'root' && !contains(where.data, path))
  if (!allowed(gitdir) || !allowed(common)) return { error: 'its .git leads out of the workspace' }
  const lenders = (readPlain(join(common, 'objects/info/alternates')) ?? '').split('\n').filter(Boolean)
  const borrowed = lenders.map(path => realOrUndefined(resolve(common, 'objects', path)))
  if (borrowed.some(path => path !== undefined && !allowed(path)))
    return { error: 'it borrows objects from outside the workspace' }
  if (!statusOrUndefined(join(common, 'objects')) || readPlain(join(gitdir, 'HEAD')) === undefined)
    return { error: 'its git folder has no HEAD or no objects' }
  return { repo, dir, gitdir, common }
}
