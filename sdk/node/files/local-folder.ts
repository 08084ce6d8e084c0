import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openOwnFolder, type OpenedPath } from './open-path.js'
import { ignored } from '../../ignored.js'

/** The folder for files of the sandbox that must be on the workspace's disk and in no commit. */
export const LOCAL_FOLDER = ['.sandbox', 'local'] as const

/** Opens a folder in it, and creates it if missing. */
export const openLocal = async (root: string, name: string): Promise<OpenedPath> => {
  const folder = await openOwnFolder(root, [...LOCAL_FOLDER, name])
  await using local = await openOwnFolder(root, LOCAL_FOLDER)
  await writeFile(join(local.at, '.gitignore'), '*\n', { flag: 'wx' }).catch(ignored('it is there already'))
  return folder
}
