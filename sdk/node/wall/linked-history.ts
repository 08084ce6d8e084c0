import { realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { readPlain } from '../files/files.js'
import { contains } from '../files/paths.js'
import { kindOf } from './sources.js'
import type { Mount, WallSpec } from './spec.js'

/**
 * The repository of a workspace that is a linked working tree (git-worktree(1)), when it lies elsewhere.
 *
 * The repository must name the workspace as a tree of its own: the pointer in the workspace alone could have been
 * written by a turn, to be shown whatever it names.
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
