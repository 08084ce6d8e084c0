import { constants, rmSync, writeSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Refusal } from '../../refusal.js'
import { flushFolders } from './files.js'
import { prefixFolder } from './names.js'
import { codeOf } from './paths.js'
import { ignored } from '../../ignored.js'

const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL'])
const CLOSED = new Set(['EACCES', 'EPERM', 'EROFS'])

const NO_ROOM = 'the disk is full and the change was not kept: free some space and try again'

/** SQLite's own code of a full disk (https://sqlite.org/rescode.html#full), which Node's errors have as `errcode`. */
const SQLITE_FULL = 13

/** Whether a write failed for want of room, or something failed because of such a write. */
export const isFull = (error: unknown): boolean =>
  FULL.has(codeOf(error) ?? '')
  || (error as { errcode?: number } | undefined)?.errcode === SQLITE_FULL
  || (error instanceof Error && error.cause !== undefined && isFull(error.cause))

/** Whether a write failed because nothing may be written there. */
export const isClosed = (error: unknown): boolean => CLOSED.has(codeOf(error) ?? '')

/** A failed write as callers should see it: a full disk is theirs to mend, everything else is a fault. */
export const writeFailure = (error: unknown): unknown =>
  isFull(error) ? new Refusal('too-large', NO_ROOM, { cause: error }) : error

/** Writes all bytes at an offset, however many calls the system takes for it. */
export const writeAll = (fd: number, bytes: Uint8Array, at: number): void => {
  for (let done = 0; done < bytes.length;) {
    const wrote = writeSync(fd, bytes, done, bytes.length - done, at + done)
    if (wrote === 0) throw new Error('the file takes no more bytes')
    done += wrote
  }
}

/** Where the bytes of files are that are being replaced now. */
const inUse = new Set<string>()
const TEMPORARY = /^\..+\.tmp$/

/** Removes what replacements that were cut off left below a folder; those under way stay. */
export const sweepTemporaries = async (root: string): Promise<void> => {
  // `recursive` would read the kind of each entry again.
  const entries = await readdir(root, { withFileTypes: true }).catch(error => {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  })
  for (const entry of entries) {
    const path = join(root, entry.name)
    if (entry.isDirectory()) await sweepTemporaries(path)
    else if (TEMPORARY.test(entry.name) && !inUse.has(path)) rmSync(path, { force: true })
  }
}

/** Replaces a file in one step: readers see the old bytes or the new ones, also after a power cut. */
export const replaceFile = async (path: string, bytes: Uint8Array): Promise<void> => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // One fixed name, since writers of a name take turns: what a crash leaves behind is overwritten by the next write.
  const temporary = join(dirname(path), `.${basename(path)}.tmp`)
  inUse.add(temporary)
  try {
    await rm(temporary, { force: true })
    const handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
    try {
      await handle.writeFile(bytes)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(ignored('the failure before it counts'))
    throw writeFailure(error)
  } finally {
    inUse.delete(temporary)
  }
  await flushFolders(path)
}

/** The names of the files below a root that begin with a prefix, without their extension, sorted. */
export const namesBelow = async (
  root: string,
  prefix: string,
  extension: (name: string) => string,
): Promise<string[]> => {
  const folder = prefixFolder(prefix)
  const found: string[] = []
  const walk = async (parts: readonly string[]): Promise<void> => {
    const entries = await readdir(join(root, ...parts), { withFileTypes: true }).catch(error => {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return []
      throw error
    })
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue
      const path = [...parts, entry.name].join('/')
      if (entry.isDirectory()) {
        if (path.startsWith(prefix) || prefix.startsWith(`${path}/`)) await walk([...parts, entry.name])
        continue
      }
      const end = extension(path)
      if (entry.isFile() && path.endsWith(end) && path.startsWith(prefix)) found.push(path.slice(0, -end.length))
    }
  }
  await walk(folder)
  return found.filter(name => name.startsWith(prefix)).sort()
}
