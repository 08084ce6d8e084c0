import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../refusal.js'
import { isClosed, isFull } from './disk.js'
import { writeAtomic, flushFolders } from './files.js'
import { codeOf } from './paths.js'

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const MISSING = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The path by which system calls reach a name in an open folder. */
const through = (handle: FileHandle, path: string): string =>
  process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path

/**
 * Does something in a folder below a root, reached name by name without following a link; undefined: there is none.
 *
 * With `make` missing folders are made, and what is there and no folder is refused.
 */
export const inRealFolder = async <T>(
  root: string,
  names: readonly string[],
  { make = false },
  work: (at: string) => Promise<T>,
): Promise<T | undefined> => {
  const handles: FileHandle[] = []
  try {
    handles.push(await open(root, constants.O_RDONLY | constants.O_DIRECTORY))
    let path = through(handles[0]!, root)
    for (const [nth, name] of names.entries()) {
      const next = join(path, name)
      if (make) await mkdir(next).catch(error => (codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error)))
      const handle = await open(next, FOLDER).catch(async error => {
        if (!MISSING.has(codeOf(error) ?? '')) throw error
        if (make) refuse('unprocessable', `${names.slice(0, nth + 1).join('/')} is no folder: put one in its place`)
        return undefined
      })
      if (!handle) return undefined
      handles.push(handle)
      path = through(handle, next)
    }
    return await work(path)
  } finally {
    for (const handle of handles) await handle.close()
  }
}

/** The bytes of a plain file of at most so many bytes in an open folder; undefined: there is none, or it is larger. */
export const plainBytes = async (path: string, most: number): Promise<Buffer | undefined> => {
  const handle = await open(path, FILE).catch(() => undefined)
  try {
    const found = await handle?.stat()
    if (!handle || !found?.isFile() || found.size > most) return undefined
    return await handle.readFile()
  } finally {
    await handle?.close()
  }
}

/** The text of a plain UTF-8 file in an open folder; undefined: there is none of that kind and size. */
export const plainText = async (path: string, most: number): Promise<string | undefined> => {
  const bytes = await plainBytes(path, most)
  try {
    return bytes && utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** The text of such a file by its path below a folder; undefined also where a link is on the way. */
export const textBelow = (root: string, path: string, most: number): Promise<string | undefined> => {
  const names = path.split('/')
  const text = (at: string) => plainText(join(at, names.at(-1)!), most)
  return inRealFolder(root, names.slice(0, -1), {}, text).catch(() => undefined)
}

/** The names of the folders in an open folder, sorted; links are none. */
export const foldersIn = async (at: string): Promise<string[]> =>
  (await readdir(at, { withFileTypes: true }))
    .filter(entry => entry.isDirectory())
    .map(({ name }) => name)
    .sort()

/** Whether anything has a name in an open folder. */
export const entryExists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

/** A file to write, and whether it is a program. */
export interface FileBelow {
  readonly name: string
  readonly data: string | Uint8Array
  readonly executable?: boolean
}

/** Writes a file below a root in one step, durably, and makes its folders; a file of the same bytes is left alone. */
export const writeBelow = async (
  root: string,
  names: readonly string[],
  { name, data, executable = false }: FileBelow,
): Promise<void> => {
  const shown = [...names, name].join('/')
  const bytes = Buffer.from(data as Uint8Array)
  try {
    await inRealFolder(root, names, { make: true }, async at => {
      const path = join(at, name)
      if ((await plainBytes(path, bytes.length))?.equals(bytes)) return
      await writeAtomic(path, bytes, { mode: executable ? 0o755 : 0o644 })
    })
    await flushFolders(join(root, ...names, name))
  } catch (cause) {
    if (isFull(cause)) refuse('too-large', `the disk is full, so ${shown} stays as it was: free some space`, { cause })
    if (isClosed(cause) || codeOf(cause) === 'ENOENT')
      refuse('dependency', `${shown} could not be written (${codeOf(cause)}): open its folder for writing`, { cause })
    throw cause
  }
}
