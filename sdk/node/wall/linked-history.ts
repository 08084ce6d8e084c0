import { realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { readPlain } from '../files/files.js'
import { contains } from '../files/paths.js'
import { kindOf } from './sources.js'
import type { Mount, WallSpec } from './spec.js'

/**
 * Mounts the repository of a workspace that is a linked worktree (git-worktree(1)), if it lies elsewhere.
 *
 * The repository must list the workspace as its worktree: a turn could have written the pointer in the workspace to get
 * any path mounted.
 */
export const linkedHistory = async ({ workspace, data }: Pick<WallSpec, 'workspace' | 'data'>): Promise<Mount[]> => {
  const pointer = /^gitdir: (.+)\n$/.exec(readPlain(join(workspace, '.git')) ?? '')?.[1]
  if (pointer === undefined) return []
  const entry = await realpath(resolve(workspace, pointer)).catch(() => undefined)
  if (entry === undefined || contains(workspace, entry) || contains(data, entry)) return []
  const named = readPlain(join(entry, 'gitdir'))?.trim()
  const isEntry = basename(dirname(entry)) === 'worktrees' && readPlain(join(entry, 'commondir'))?.trim() === '../..'
  if (!isEntry || named === undefined || resolve(entry, named) !== join(workspace, '.git')) return []
  const common = resolve(entry, '../..')
  const isRepository =
    readPlain(join(common, 'HEAD')) !== undefined && (await kindOf(join(common, 'objects'))) === 'folder'
  return isRepository ? [['bind', common, common, 'history of the workspace']] : []
}
