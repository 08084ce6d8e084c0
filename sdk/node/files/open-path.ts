import { isUtf8 } from 'node:buffer'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, mkdir, open, readlink, realpath, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { accessTo, allows, leads, type Reach } from '../../reach.js'
import { refuse } from '../../refusal.js'
import { closedAs } from './closed-names.js'
import { codeOf, contains, segmentsOf } from './paths.js'

/** A folder whose paths a caller names, and how far they reach in it. */
export interface PathTree {
  /** Its real path. */
  readonly root: string
  readonly reach: Reach
  /** What repositories below the root keep in their `.git` may be read. */
  readonly readsGit: boolean
}

/** What has a name in a tree, held open: what becomes of its name meanwhile changes nothing. */
export interface OpenedPath extends AsyncDisposable {
  /** By which system calls reach it. */
  readonly at: string
  /** Its real location, as a path from the root; `.` for the root. */
  readonly path: string
  readonly stats: Stats
  close(): Promise<void>
}

/** An open folder, and a name in it that need not be there. */
export interface OpenedParent extends OpenedPath {
  readonly name: string
  /** The name as a path for system calls. */
  readonly target: string
  /** Folders that were made on the way there, as paths from the root. */
  readonly made: readonly string[]
}

/** How a path is opened. */
export interface OpenOptions {
  /** Its names are listed: a folder on the way down to what the reach has is there too. */
  readonly lists?: boolean
}

const LINUX = process.platform === 'linux'
/** Linux's O_PATH: holds a place without opening it, so that a pipe does not block and a device is not touched. */
export const O_PATH = 0o10000000
const LOOK = LINUX ? O_PATH : constants.O_RDONLY | constants.O_NONBLOCK
const ITSELF = LOOK | constants.O_DIRECTORY | constants.O_NOFOLLOW
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'EPERM', 'ENAMETOOLONG', 'ENXIO'])

/** A path as a message names it: in quotes, whatever characters it has. */
export const shownPath = (path: string): string => JSON.stringify(path.slice(0, MOST_SHOWN))

const MOST_SHOWN = 200
const CONTROL = /[\x00-\x1f\x7f]/

const absent = (path: string): never => refuse('not-found', `nothing in the workspace is named ${shownPath(path)}`)

/** Where an open descriptor really is; undefined: its name is gone, or cannot be written down. */
const whereIs = async (handle: FileHandle, stats: Stats, path: string): Promise<string | undefined> => {
  if (stats.nlink === 0) return undefined
  if (LINUX) {
    const real = await readlink(`/proc/self/fd/${handle.fd}`, { encoding: 'buffer' })
    return isUtf8(real) ? real.toString() : undefined
  }
  const real = await realpath(path)
  const now = await stat(real)
  return now.ino === stats.ino && now.dev === stats.dev ? real : undefined
}

const opened = (handle: FileHandle, stats: Stats, real: string, path: string): OpenedPath => ({
  at: LINUX ? `/proc/self/fd/${handle.fd}` : real,
  path,
  stats,
  close: () => handle.close(),
  [Symbol.asyncDispose]: () => handle.close(),
})

/** Opens what some segments name, links followed; undefined: nothing is there. Refuses what lies outside the root. */
const look = async (root: string, segments: readonly string[], named: string): Promise<OpenedPath | undefined> => {
  const path = join(root, ...segments)
  let handle: FileHandle
  try {
    handle = await open(path, LOOK)
  } catch (error) {
    if (ABSENT.has(codeOf(error) ?? '')) return undefined
    throw error
  }
  try {
    const stats = await handle.stat()
    const real = await whereIs(handle, stats, path)
    if (real !== undefined && !contains(root, real))
      refuse('invalid', `expected a path in the workspace, found ${shownPath(named)}, which leads out of it`, {
        errors: [{ path: 'path', expected: 'a path that leads nowhere outside the workspace' }],
      })
    if (real !== undefined) return opened(handle, stats, real, relative(root, real) || '.')
  } catch (error) {
    await handle.close()
    throw error
  }
  await handle.close()
  return undefined
}

const partsOf = (path: string): string[] => (path === '.' ? [] : path.split('/'))

/** Whether a path exists for the caller: not what belongs to the sandbox or git, nor what their reach leaves out. */
export const isReadable = (
  { reach, readsGit }: Omit<PathTree, 'root'>,
  path: string,
  { lists = false }: OpenOptions = {},
): boolean => {
  const closed = closedAs(partsOf(path))
  if (closed === 'closed' || (closed === 'git' && !readsGit)) return false
  return lists ? leads(reach, path) : accessTo(reach, path) !== undefined
}

const assertReadable = (tree: PathTree, parts: readonly string[], named: string, options?: OpenOptions): void => {
  if (!isReadable(tree, parts.join('/') || '.', options)) absent(named)
}

const assertWritable = ({ reach, readsGit }: PathTree, parts: readonly string[], named: string): void => {
  const closed = closedAs(parts)
  if (closed === 'git' && readsGit) refuse('conflict', `${shownPath(named)} belongs to git and is not written here`)
  if (closed !== undefined && closed !== 'inbox') absent(named)
  const path = parts.join('/') || '.'
  if (accessTo(reach, path) === undefined) absent(named)
  if (!allows(reach, path, 'work'))
    refuse('forbidden', `${shownPath(named)} may be read only: it lies in an area held for reading`)
}

/**
 * Opens a path of a tree, `.` for the root, links followed; undefined: nothing has that name. Close it.
 *
 * Where it is, is asked of the open descriptor: a link that takes the place of a folder meanwhile leads nowhere. What
 * leads out of the root is refused as malformed; what is closed, or outside the reach, is not found.
 */
export const openPath = async (
  tree: PathTree,
  path: string,
  options?: OpenOptions,
): Promise<OpenedPath | undefined> => {
  const segments = path === '.' ? [] : segmentsOf(path, { existing: true })
  if (closedAs(segments) === 'closed') absent(path)
  for (let kept = segments.length; kept >= 0; kept--) {
    const found = await look(tree.root, segments.slice(0, kept), path)
    if (!found) continue
    try {
      assertReadable(tree, [...partsOf(found.path), ...segments.slice(kept)], path, options)
    } catch (error) {
      await found.close()
      throw error
    }
    if (kept === segments.length) return found
    await found.close()
    return undefined
  }
  return undefined
}

/** As `openPath`; refuses where nothing has the name. */
export const openExisting = async (tree: PathTree, path: string, options?: OpenOptions): Promise<OpenedPath> =>
  (await openPath(tree, path, options)) ?? absent(path)

/** Opens what a path names, for reading; refused unless it is a plain file. */
export const openFile = async (place: Pick<OpenedPath, 'at' | 'stats'>, named: string): Promise<FileHandle> => {
  if (place.stats.isDirectory()) refuse('unprocessable', `expected a file, found the folder ${shownPath(named)}`)
  if (!place.stats.isFile())
    refuse('unprocessable', `expected a file, found a pipe, socket or device at ${shownPath(named)}`)
  return open(place.at, constants.O_RDONLY | constants.O_NONBLOCK).catch(error =>
    codeOf(error) === 'EACCES' || codeOf(error) === 'EPERM'
      ? refuse('unprocessable', `${shownPath(named)} cannot be read: its permissions do not allow it`)
      : Promise.reject(error),
  )
}

/** Refuses names that are not created here: what is there already may have them. */
const assertCreatable = (names: readonly string[], path: string): void => {
  segmentsOf(names.join('/'))
  if (names.some(segment => CONTROL.test(segment)))
    refuse('invalid', `path: expected names without control characters, found ${shownPath(path)}`, {
      errors: [{ path: 'path', expected: 'names without control characters' }],
    })
}

/** How a name that is to be written is reached. */
export interface ParentOptions {
  /** Make the folders that are missing on the way. */
  readonly make?: boolean
  /** The name must be there already, so it may be one that nobody could create here. */
  readonly existing?: boolean
  /** The name was there once, so it may be one that nobody could create here. */
  readonly was?: boolean
  /** The name is only read: it may lie in a folder held for reading. */
  readonly reads?: boolean
}

/** Opens the folder of a name that is to be created, replaced or removed; a link of that name is not followed. */
export const openParent = async (tree: PathTree, path: string, options: ParentOptions = {}): Promise<OpenedParent> => {
  const segments = segmentsOf(path, { existing: true })
  const name = segments.at(-1)!
  if (closedAs(segments) === 'closed') absent(path)
  const above = segments.slice(0, -1)
  for (let kept = above.length; kept >= 0; kept--) {
    const found = await look(tree.root, above.slice(0, kept), path)
    if (!found) continue
    const missing = above.slice(kept)
    try {
      if (!options.existing && !options.was) assertCreatable([...missing, name], path)
      const parts = [...partsOf(found.path), ...missing, name]
      if (options.reads) assertReadable(tree, parts, path)
      else assertWritable(tree, parts, path)
      if (!found.stats.isDirectory()) {
        if (options.existing) absent(path)
        refuse('conflict', `${shownPath(found.path)} is a file, and ${shownPath(path)} needs a folder there`)
      }
      if (missing.length > 0 && !options.make) absent(path)
    } catch (error) {
      await found.close()
      throw error
    }
    return descend(tree.root, found, missing, name)
  }
  return absent(path)
}

/** Opens a folder of the daemon's own below a root, made where it is missing; refused where a link is on the way. */
export const openOwnFolder = async (root: string, segments: readonly string[]): Promise<OpenedPath> => {
  const found = (await look(root, [], '.')) ?? absent('.')
  return descend(root, found, segments, '')
}

/** Makes folders below an open one, each reached through the one above it. */
const descend = async (
  root: string,
  from: OpenedPath,
  missing: readonly string[],
  name: string,
): Promise<OpenedParent> => {
  let folder = from
  const made: string[] = []
  for (const segment of missing) {
    const below = folder
    const next = join(below.at, segment)
    try {
      await mkdir(next).catch(error => (codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error)))
      const handle = await open(next, ITSELF).catch(error =>
        ABSENT.has(codeOf(error) ?? '')
          ? refuse('conflict', `${shownPath(`${below.path}/${segment}`)} is no folder, and one is needed there`)
          : Promise.reject(error),
      )
      const stats = await handle.stat()
      const real = await whereIs(handle, stats, next)
      if (real === undefined || !contains(root, real)) {
        await handle.close()
        absent(segment)
      }
      folder = opened(handle, stats, real!, relative(root, real!))
      made.push(folder.path)
    } finally {
      await below.close()
    }
  }
  return { ...folder, name, target: join(folder.at, name), made }
}
