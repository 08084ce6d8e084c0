import { lstat, realpath, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { readPlain } from '../../sdk/node/files/files.js'
import { gitdirsIn } from '../../sdk/node/wall/gitdirs.js'
import { kindOf } from '../../sdk/node/wall/sources.js'

const POINTER = /^gitdir: (.+)\n$/s

/** The name of the git dir in the data folder that a checkout's `.git` file points to; undefined: it has another. */
export const pointedGitdir = (dir: string, data: string): string | undefined => {
  const gitdir = POINTER.exec(readPlain(join(dir, '.git')) ?? '')?.[1]
  return gitdir !== undefined && dirname(gitdir) === gitdirsIn(data) ? basename(gitdir) : undefined
}

/**
 * Writes the `.git` file of a checkout that lost it, unless something is there, its git dir is gone, or another
 * checkout has that git dir now.
 */
export const restorePointer = async (
  dir: string,
  data: string,
  name: string,
  others: readonly string[],
): Promise<void> => {
  const gitdir = join(gitdirsIn(data), basename(name))
  const lost = !(await lstat(join(dir, '.git')).catch(() => undefined))
  const moved = (await realpath(dir).catch(() => undefined)) !== dir
  if (!lost || moved || (await kindOf(gitdir)) !== 'folder') return
  if (others.some(other => pointedGitdir(other, data) === basename(name))) return
  await writeFile(join(dir, '.git'), `gitdir: ${gitdir}\n`, { flag: 'wx' })
}
