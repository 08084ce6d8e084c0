import { isUtf8 } from 'node:buffer'
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  read,
  readdirSync,
  readlinkSync,
  realpathSync,
  type Stats,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { accessTo, leads } from '../../../sdk/index.js'
import { closedAs } from '../../../sdk/node/files/closed-names.js'
import { isTemporary } from '../../../sdk/node/files/files.js'
import { O_PATH } from '../../../sdk/node/files/open-path.js'
import type { PathTree } from '../../../sdk/node/files/open-path.js'
import { IgnoreRules, isIgnored, pathIn } from './ignore-rules.js'

/** The options of a sweep. */
export interface SweepOptions {
  /** The folder to begin in; left out: the root. */
  readonly from?: string
  readonly ignored?: boolean
  /** Links too, as themselves. */
  readonly links?: boolean
  /** Includes `.git` of repositories below the root. */
  readonly git?: boolean
  readonly signal?: AbortSignal
}

/** Something that a sweep found. */
export interface SweptName {
  readonly path: string
  readonly kind: 'file' | 'folder' | 'link'
}

const SLICE_MS = 5
const LINUX = process.platform === 'linux'
/** On Linux a folder is found also where its names may not be read. */
const FOLDER_ITSELF = (LINUX ? O_PATH : constants.O_RDONLY) | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** An open folder of a tree. */
export interface OpenFolder extends Disposable {
  /** By which system calls reach it. */
  readonly at: string
}

/** Opens a folder that the system confirms to be at that path; undefined if it cannot be read. */
export const openFolder = (root: string, path: string): OpenFolder | undefined => {
  const place = path === '.' ? root : join(root, path)
  let fd: number | undefined
  try {
    fd = openSync(place, FOLDER_ITSELF)
    const real = LINUX ? readlinkSync(`/proc/self/fd/${fd}`) : realpathSync.native(place)
    if (real === place) {
      const kept = fd
      fd = undefined
      return { at: LINUX ? `/proc/self/fd/${kept}` : place, [Symbol.dispose]: () => closeSync(kept) }
    }
  } catch {
    // It is gone, no folder any more, or closed to the daemon.
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
  return undefined
}

/** A plain file of a tree, open for reading. */
export interface SweptFile extends Disposable {
  readonly fd: number
  readonly stats: Stats
}

/**
 * Opens a file at its real path, which the caller may read; undefined if something else is there by now, or it cannot
 * be read.
 */
export const openSweptFile = (root: string, path: string): SweptFile | undefined => {
  const place = join(root, path)
  let found: number | undefined
  try {
    // A pipe or device in its place is not opened, and neither is what a link leads to.
    found = openSync(place, (LINUX ? O_PATH : constants.O_RDONLY | constants.O_NONBLOCK) | constants.O_NOFOLLOW)
    const at = LINUX ? `/proc/self/fd/${found}` : place
    const stats = fstatSync(found)
    if (!stats.isFile() || (LINUX ? readlinkSync(at) : realpathSync.native(place)) !== place) return undefined
    const fd = openSync(at, constants.O_RDONLY | constants.O_NONBLOCK)
    return { fd, stats, [Symbol.dispose]: () => closeSync(fd) }
  } catch {
    return undefined
  } finally {
    if (found !== undefined) closeSync(found)
  }
}

const readFrom = promisify(read)

/** The bytes that a file had when it was opened, fewer if it became shorter. */
export const bytesOfSwept = async ({ fd, stats: { size } }: SweptFile): Promise<Buffer> => {
  const bytes = Buffer.allocUnsafe(size)
  let filled = 0
  for (let more = 1; more > 0 && filled < size; filled += more)
    more = (await readFrom(fd, bytes, filled, size - filled, filled)).bytesRead
  return bytes.subarray(0, filled)
}

/** Reads a folder through a descriptor that the system confirms to be that folder; nothing if it cannot be read. */
const readThrough = <Entry>(root: string, path: string, read: (place: string) => Entry[]): Entry[] => {
  using folder = openFolder(root, path)
  try {
    return folder ? read(folder.at) : []
  } catch {
    return []
  }
}

/** The names of a folder, byte by byte. */
export const namesOfFolder = (root: string, path: string) =>
  readThrough(root, path, place => readdirSync(place, { withFileTypes: true, encoding: 'buffer' }))

/** The names of a folder as text, in half the time; not UTF-8 shows as U+FFFD. */
export const textNamesOfFolder = (root: string, path: string) =>
  readThrough(root, path, place => readdirSync(place, { withFileTypes: true }))

/**
 * The files and folders of a tree within a reach, folders before their contents. Closed names are left out, and
 * unless requested links, git folders and ignored names. It yields to other work every few milliseconds.
 */
export async function* sweepTree(tree: PathTree, options: SweepOptions = {}): AsyncGenerator<SweptName> {
  const { root, reach } = tree
  const { from = '.', ignored = false, links = false, git = false, signal } = options
  const rules = new IgnoreRules(root)
  const waiting = [from]
  let began = performance.now()
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    if (performance.now() - began > SLICE_MS) {
      await new Promise<void>(resolve => setImmediate(resolve))
      signal?.throwIfAborted()
      began = performance.now()
    }
    const scope = rules.in(folder)
    for (const found of namesOfFolder(root, folder)) {
      const kind = found.isDirectory()
        ? 'folder'
        : found.isFile()
          ? 'file'
          : found.isSymbolicLink()
            ? 'link'
            : undefined
      if (kind === undefined || (kind === 'link' && !links)) continue
      if (!isUtf8(found.name)) continue
      const name = found.name.toString()
      const path = pathIn(folder, name)
      const directory = kind === 'folder'
      const closed = closedAs(path.split('/'))
      if (closed === 'closed' || (closed === 'git' && !git) || isTemporary(name)) continue
      if (reach && !(directory ? leads(reach, path) : accessTo(reach, path) !== undefined)) continue
      if (!ignored && isIgnored(scope, path, directory)) continue
      if (directory) waiting.push(path)
      if (!directory || accessTo(reach, path) !== undefined) yield { path, kind }
    }
  }
}
