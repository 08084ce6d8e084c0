import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openOwnFolder, type OpenedPath } from '../../sdk/node/files/open-path.js'

/** Where the sandbox keeps what must lie on the workspace's own disk and belongs to no commit. */
export const LOCAL_FOLDER = ['.sandbox', 'local'] as const

/** Opens a folder of it, made where it is missing. */
export const openLocal = async (root: string, name: string): Promise<OpenedPath> => {
  const folder = await openOwnFolder(root, [...LOCAL_FOLDER, name])
  await using local = await openOwnFolder(root, LOCAL_FOLDER)
  await writeFile(join(local.at, '.gitignore'), '*\n', { flag: 'wx' }).catch(() => {})
  return folder
}
