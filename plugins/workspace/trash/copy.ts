import { shownPath } from '../../../sdk/node/files/open-path.js'
import { constants } from 'node:fs'
import { chmod, copyFile, lstat, lutimes, mkdir, open, readdir, readlink, symlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const LINUX = process.platform === 'linux'

const through = (fd: number, path: string): string => (LINUX ? `/proc/self/fd/${fd}` : path)

/** The excluded file: the pointer to a git folder elsewhere. */
const isPointer = (name: string, folder: boolean): boolean => name === '.git' && !folder

const unreadable = (named: string) => (error: unknown) =>
  codeOf(error) === 'EACCES' || codeOf(error) === 'EPERM'
    ? refuse('unprocessable', `${shownPath(named)} cannot be read: its permissions do not allow it`)
    : Promise.reject(error)

/**
 * Copies a file or folder to a free path: files with their modes and times, links as links.
 *
 * Each folder is read through its open descriptor, so a link that replaces it meanwhile is not followed.
 */
export const copyAll = async (from: string, to: string, named: string): Promise<void> => {
  const stats = await lstat(from)
  if (stats.isSymbolicLink()) {
    await symlink(await readlink(from, { encoding: 'buffer' }), to)
    return lutimes(to, stats.atime, stats.mtime)
  }
  if (stats.isDirectory()) {
    await using folder = await open(from, FOLDER).catch(unreadable(named))
    const at = through(folder.fd, from)
    await mkdir(to, { mode: 0o700 })
    for (const entry of await readdir(at, { withFileTypes: true })) {
      if (isPointer(entry.name, entry.isDirectory())) continue
      await copyAll(join(at, entry.name), join(to, entry.name), `${named}/${entry.name}`)
    }
    await chmod(to, stats.mode & 0o7777)
    return await utimes(to, stats.atime, stats.mtime)
  }
  if (!stats.isFile()) refuse('unprocessable', `${shownPath(named)} is a pipe, socket or device and cannot be copied`)
  await using file = await open(from, FILE).catch(unreadable(named))
  await copyFile(through(file.fd, from), to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  await chmod(to, stats.mode & 0o7777)
  await utimes(to, stats.atime, stats.mtime)
}
