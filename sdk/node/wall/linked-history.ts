import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { readPlain } from '../files/files.js'
import { contains } from '../files/paths.js'
import { needProgram, ownEnv, run } from '../programs/run.js'
import { kindOf } from './sources.js'
import type { Mount, WallSpec } from './spec.js'

/**
 * Mounts the repository of a workspace that lies elsewhere: that of a linked worktree (git-worktree(1)), or a separate
 * git dir.
 *
 * It must know the workspace by what no turn can write: a turn could have written the pointer in the workspace to get
 * any path mounted.
 */
export const linkedHistory = async ({ workspace, data }: Pick<WallSpec, 'workspace' | 'data'>): Promise<Mount[]> => {
  const pointer = /^gitdir: (.+)\n$/.exec(readPlain(join(workspace, '.git')) ?? '')?.[1]
  if (pointer === undefined) return []
  const entry = await realpath(resolve(workspace, pointer)).catch(() => undefined)
  if (entry === undefined || contains(workspace, entry) || contains(data, entry)) return []
  const common = linkedCommon(workspace, entry) ?? ((await isSeparate(workspace, entry)) ? entry : undefined)
  if (common === undefined) return []
  const isRepository =
    readPlain(join(common, 'HEAD')) !== undefined && (await kindOf(join(common, 'objects'))) === 'folder'
  return isRepository ? [['bind', common, common, 'history of the workspace']] : []
}

/** The git dir that lists the workspace as its linked worktree. */
const linkedCommon = (workspace: string, entry: string): string | undefined => {
  const named = readPlain(join(entry, 'gitdir'))?.trim()
  const isEntry = basename(dirname(entry)) === 'worktrees' && readPlain(join(entry, 'commondir'))?.trim() === '../..'
  if (!isEntry || named === undefined || resolve(entry, named) !== join(workspace, '.git')) return undefined
  return resolve(entry, '../..')
}

/** The separate git dirs that are known to be those of a workspace. */
const separate = new Set<string>()

const TIMEOUT_MS = 10_000
/** An index keeps 32 bits of a number (gitformat-index(5)). */
const WORD = 0xffff_ffffn
/** One file in the answer of `git ls-files --debug`. */
const ENTRY = /^(\S.*)\n {2}ctime: (\d+):(\d+)\n {2}mtime: .*\n {2}dev: (\d+)\tino: (\d+)$/gm

/** How much of git's answer is enough to find a file that did not change. */
const MOST_BYTES = 256 * 1024

/**
 * Whether a git dir is that of a workspace (`--separate-git-dir` of git-init(1)): its index has a file by the inode and
 * change time, or device, that it has there, which nobody can choose.
 */
const isSeparate = async (workspace: string, gitdir: string): Promise<boolean> => {
  const key = `${workspace}\0${gitdir}`
  if (separate.has(key)) return true
  // One named so belongs to the folder around it.
  if (basename(gitdir) === '.git' || readPlain(join(gitdir, 'commondir')) !== undefined) return false
  const env = await ownEnv({
    GIT_DIR: gitdir,
    GIT_WORK_TREE: workspace,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_OPTIONAL_LOCKS: '0',
  })
  const args = ['-c', 'safe.directory=*', '-c', 'core.fsmonitor=false', '-c', 'core.quotePath=false']
  const { stdout } = await run(await needProgram('git'), [...args, 'ls-files', '--debug'], {
    cwd: '/',
    env,
    maxBytes: MOST_BYTES,
    timeoutMs: TIMEOUT_MS,
  })
  for (const [, path = '', seconds, nanoseconds, device, inode] of stdout.toString().matchAll(ENTRY)) {
    const found = await lstat(join(workspace, path), { bigint: true }).catch(() => undefined)
    if (!found || (found.ino & WORD) !== BigInt(inode!)) continue
    const isUnchanged = found.ctimeNs === BigInt(seconds!) * 1_000_000_000n + BigInt(nanoseconds!)
    // A file that was edited since is the same one, but a device can have another number after a start.
    if (!isUnchanged && (found.dev & WORD) !== BigInt(device!)) continue
    separate.add(key)
    return true
  }
  return false
}
