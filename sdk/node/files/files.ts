import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { copyFile, lstat, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { failpoint } from '../failpoint.js'
import { codeOf } from './paths.js'

/** The beginning of every temporary name that a write leaves behind only when its process is killed in it. */
export const TEMPORARY = '.sandbox-write-'

/** What a write may ask for. */
export interface WriteOptions {
  /** Permission bits, whatever the umask; 0o600 when left out. */
  readonly mode?: number
  /** Wait until the new name itself would survive a power cut. */
  readonly flush?: boolean
}

/** Makes the names in a folder durable. */
export const flushFolder = (folder: string): Promise<void> => flushAt(folder, 'r')

const flushAt = async (path: string, flags: string | number): Promise<void> => {
  const handle = await open(path, flags)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** How many files are flushed at once. */
const FLUSHES = 16

/** Makes everything below a folder durable, and the folder's own name. Links are not followed. */
export const flushTree = async (folder: string): Promise<void> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const below = entries.filter(entry => entry.isFile() || entry.isDirectory())
  const paths = [folder, ...below.map(({ parentPath, name }) => join(parentPath, name))].values()
  const flushNext = async (): Promise<void> => {
    for (const path of paths) await flushAt(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  }
  await Promise.all(Array.from({ length: FLUSHES }, flushNext))
  await flushFolders(folder)
}

/** Folders whose own names survive a power cut, each by what it was: one that is made anew is not known. */
const lasting = new Map<string, string>()
const MOST_LASTING = 10_000
/** Folders above the daemon's own that it may not flush. */
const NOT_OURS = new Set(['EACCES', 'EPERM', 'EINVAL'])

/** Makes the name of a file, and of every folder on the way to it, survive a power cut. */
export const flushFolders = async (path: string): Promise<void> => {
  let folder = dirname(path)
  await flushFolder(folder)
  for (let above = dirname(folder); above !== folder; folder = above, above = dirname(folder)) {
    const { ino, birthtimeNs } = await lstat(folder, { bigint: true })
    const is = `${ino} ${birthtimeNs}`
    if (lasting.get(folder) === is) return
    await flushFolder(above).catch(error => {
      if (!NOT_OURS.has(codeOf(error) ?? '')) throw error
    })
    if (lasting.size >= MOST_LASTING) lasting.clear()
    lasting.set(folder, is)
  }
}

/** Replaces a file in one step: readers see the old bytes or the new ones, also after `kill -9`. */
export const writeAtomic = async (
  path: string,
  data: string | Uint8Array,
  options: WriteOptions = {},
): Promise<void> => {
  const folder = dirname(path)
  const temporary = join(folder, TEMPORARY + randomBytes(9).toString('hex'))
  const handle = await open(temporary, 'wx', 0o600)
  try {
    try {
      await handle.writeFile(data)
      await handle.chmod(options.mode ?? 0o600)
      await handle.sync()
    } finally {
      await handle.close()
    }
    failpoint('file.temporary')
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  if (options.flush) await flushFolders(path)
}

/** Whether a file is one that a write has not put in its place yet. */
export const isTemporary = (name: string): boolean => name.startsWith(TEMPORARY)

/** Removes what writes into a folder left behind that ended with their process. */
export const sweepTemporary = (folder: string): Promise<void> => sweepOld(folder, isTemporary)

/** Removes the files of a folder that fit and are older than this process, or than a moment. */
export const sweepOld = async (
  folder: string,
  fits: (name: string) => boolean,
  before = performance.timeOrigin,
): Promise<void> => {
  for (const name of await readdir(folder).catch(() => [] as string[])) {
    if (!fits(name)) continue
    const path = join(folder, name)
    const found = await lstat(path).catch(() => undefined)
    // Another group of this daemon may be writing here at this moment.
    if (found && found.mtimeMs < before) await rm(path, { force: true })
  }
}

/** The value a JSON file holds, or undefined when there is no such file. */
export const readJson = async <T>(path: string): Promise<T | undefined> => {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
  try {
    return JSON.parse(text) as T
  } catch (error) {
    throw new Error(`${path} does not hold JSON`, { cause: error })
  }
}

const AT_ONCE = constants.O_RDONLY | constants.O_NONBLOCK
const MOST_PLAIN = 1024 * 1024

/**
 * The text of a plain file in somebody else's reach, or undefined when there is none or it is larger than `most` bytes.
 *
 * A pipe in its place would block the open, and with it the whole process.
 */
export const readPlain = (path: string, most = MOST_PLAIN): string | undefined => {
  let file: number | undefined
  try {
    file = openSync(path, AT_ONCE)
    const stat = fstatSync(file)
    return stat.isFile() && stat.size <= most ? readFileSync(file, 'utf8') : undefined
  } catch {
    return undefined
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Copies a plain file in somebody else's reach; false: there is none. */
export const copyPlain = async (from: string, to: string): Promise<boolean> => {
  const handle = await open(from, AT_ONCE).catch(() => undefined)
  try {
    if (!handle || !(await handle.stat()).isFile()) return false
    await copyFile(process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : from, to)
    return true
  } finally {
    await handle?.close()
  }
}
