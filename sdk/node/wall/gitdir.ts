import { lstat, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readPlain } from '../files.js'
import { codeOf, contains } from '../paths.js'
import { kindOf, note, real, shownAsIs } from './sources.js'
import type { Mount, WallGitdir, WallSpec } from './spec.js'

/**
 * A copy's git dir, at a path of its own in the data folder's place.
 *
 * Writable are the objects, the copy's own entry, and the folders its branch and log lie in: git moves a branch by
 * renaming a lock file beside it, so the folder `refs/heads/agent` is writable and with it the branches of other
 * conversations; every tip is therefore compared with the recorded one before it lands.
 */
export const gitdir = async (spec: WallSpec, copy: string, repository: WallGitdir, index: number): Promise<Mount[]> => {
  const { path, common, worktree, branch } = repository
  const at = join(spec.data, 'git', String(index))
  const entry = join('worktrees', worktree)
  const branches = join('refs/heads', dirname(branch))
  const log = join('logs', branches)
  // One that is gone is not made up again by what is made below it.
  await real(common)
  for (const part of ['objects', 'info']) if (await kindOf(join(common, part))) await real(join(common, part))
  for (const part of ['objects/info', branches, log]) await mkdir(join(common, part), { recursive: true })
  const part = async (operation: 'bind' | 'show', name: string): Promise<Mount> =>
    [operation, await real(join(common, name)), join(at, name)]
  const own = contains(spec.workspace, common) || contains(spec.data, common) ? [] : await shownAsIs(common)
  await real(join(copy, path))
  const excludes = join(common, 'info/exclude')
  await mkdir(dirname(excludes), { recursive: true })
  // Something to mount over has to be there, and no pipe: building the wall would wait at it for ever.
  const held = await lstat(excludes).catch(() => undefined)
  if (held && !held.isFile() && !held.isSymbolicLink()) await rm(excludes, { recursive: true, force: true })
  await writeFile(excludes, '', { flag: 'wx' }).catch(error => (codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error)))
  const ignored = [readPlain(await real(excludes)) ?? '', '/.sandbox/', ...(repository.exclude ?? []), ''].join('\n')
  return [
    ...own,
    ['show', await real(common), at],
    await part('bind', 'objects'),
    await part('show', 'objects/info'),
    await part('bind', entry),
    await part('show', join(entry, 'commondir')),
    await part('show', join(entry, 'gitdir')),
    await part('bind', branches),
    await part('bind', log),
    ['show', await note(spec.data, ignored), join(at, 'info/exclude')],
    ['show', await note(spec.data, `gitdir: ${join(at, entry)}\n`), join(spec.workspace, path, '.git')],
  ]
}
