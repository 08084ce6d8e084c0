import { lstat, readlink, symlink, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse } from '../../sdk/index.js'
import { isClosedName } from '../../sdk/node/files/closed-names.js'
import { inside, segmentsOf } from '../../sdk/node/files/paths.js'

/** Where in the workspace the link of a share is made; refuses paths outside, closed ones, and those that are taken. */
export const linkPlace = async (workspace: string, path: string): Promise<string> => {
  const segments = segmentsOf(path)
  if (isClosedName(segments)) refuse('unprocessable', `link: ${path} is a path that the sandbox keeps for itself`)
  const at = join(workspace, ...segments)
  if (await lstat(at).catch(() => undefined))
    refuse('conflict', `link: ${path} exists already: remove it, or name another`)
  const place = await inside(workspace, path, { allowMissing: true })
  const folder = await lstat(dirname(place)).catch(() => undefined)
  if (!folder?.isDirectory()) refuse('unprocessable', `link: the folder of ${path} does not exist: make it first`)
  return place
}

/** Makes the link of a share. */
export const makeLink = async (workspace: string, path: string, mountPoint: string): Promise<void> =>
  symlink(mountPoint, await linkPlace(workspace, path))

/** Whether the link of a share is there and leads to it. Neither this nor `removeLink` asks the share's server. */
export const isLinked = async (workspace: string, path: string, mountPoint: string): Promise<boolean> =>
  (await readlink(join(workspace, path)).catch(() => undefined)) === mountPoint

/** Removes the link of a share, and nothing else that took its path. */
export const removeLink = async (workspace: string, path: string, mountPoint: string): Promise<void> => {
  if (await isLinked(workspace, path, mountPoint)) await unlink(join(workspace, path))
}
