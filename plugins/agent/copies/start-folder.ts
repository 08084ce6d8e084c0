import { join, relative } from 'node:path'
import { allows, isWithin, type ReachFolder } from '../../../sdk/index.js'
import { inside } from '../../../sdk/node/files/paths.js'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import type { Conversation } from '../contract.js'

/**
 * The folder in which a turn starts; instead of a missing one the root, or for a turn limited to folders the nearest
 * one above it.
 */
export const startFolder = async (
  workspace: string,
  root: string,
  { startIn }: Pick<Conversation, 'startIn'>,
  folders: readonly ReachFolder[] | undefined,
): Promise<string> => {
  const found = startIn === undefined ? root : await folderIn(workspace, root, startIn)
  if (!folders || allows(folders, relative(root, found) || '.', 'read')) return found
  const around =
    folders.find(({ path, access }) => access === 'work' && startIn !== undefined && isWithin(path, startIn))
    ?? folders.find(({ access }) => access === 'work')
  return join(root, around?.path ?? '.')
}

/**
 * A folder of the tree; outside the repositories of a copy that of the workspace. Instead of a missing one the root.
 */
const folderIn = async (workspace: string, root: string, path: string): Promise<string> => {
  const found = (base: string) => inside(base, path).catch(() => undefined)
  const here = await found(root)
  if (here !== undefined || root === workspace || (await wallKind()) === 'none') return here ?? root
  const there = await found(workspace)
  return there === undefined ? root : join(root, relative(workspace, there))
}
