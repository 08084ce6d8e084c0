import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises'
import { dirname, join, posix, relative, sep } from 'node:path'
import { allows, ignored, isWithin, leads, Refusal, refuse, type Reach } from '../../../sdk/index.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { sweepTemporary, writeAtomic } from '../../../sdk/node/files/files.js'
import { codeOf, inside, segmentsOf } from '../../../sdk/node/files/paths.js'

const MOST_BYTES = 16 * 1024 * 1024
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** A file's bytes and its permission bits. */
export interface FoundFileText {
  readonly bytes: Buffer
  readonly mode: number
}

/** The files outside the repositories of a private copy: read from the workspace, never written. */
export interface Around {
  readonly workspace: string
  /** The paths of the repositories of the copy. */
  readonly repos: readonly string[]
}

/** The tree that tools work in: its real folder, and the part of it that they may reach; left out: all. */
export interface Rooted {
  readonly root: string
  readonly folders?: Reach
  /** Left out: the tree holds all of the workspace. */
  readonly around?: Around
  /** A folder of the workspace's `.sandbox/` that the turn may write in, also from a private copy. */
  readonly documents?: { readonly workspace: string; readonly folder: string }
  /** The folder with whole texts of results, by its absolute path: only read. */
  readonly outputs?: string
  /** Folders that the turn cannot see. */
  readonly hidden?: readonly string[]
}

/** Explains why files outside the repositories of a private copy are read-only, and where to write instead. */
export const readOnlyAround = ({ repos }: Around): string =>
  'files outside the repositories of this private copy are read-only, because they could not be landed: write '
  + `in ${repos.join(', ')}`

/** A name in an open folder: replacing a part of the path by a link cannot redirect it. */
export interface Spot {
  /** The name in that folder, as a path for system calls. */
  readonly at: string
}

const refuseClosed = (path: string, segments: readonly string[]): void => {
  if (isClosedName(segments)) refuse('forbidden', `${path} belongs to git or to the sandbox; tools do not write it`)
}

/** Refuses to create a name with control characters; what is there already may have them. */
const refuseNewName = async (path: string, real: string, segments: readonly string[]): Promise<void> => {
  if (!segments.some(segment => /[\x00-\x1f\x7f]/.test(segment))) return
  if (await lstat(real).catch(ignored('nothing is there'))) return
  refuse('invalid', `expected a name without control characters, found ${JSON.stringify(path)}`)
}

interface Placed {
  readonly home: string
  readonly segments: string[]
}

/**
 * Refuses a resolved path outside the tree's reach as if it did not exist, and writes to one that may only be
 * read.
 */
const refuseOutside = (
  { folders, hidden = [] }: Rooted,
  path: string,
  segments: readonly string[],
  way: 'list' | 'read' | 'write',
): void => {
  const place = segments.join('/') || '.'
  const unseen = hidden.some(folder => isWithin(folder, place))
  if (unseen || !(way === 'list' ? leads(folders, place) : allows(folders, place, 'read')))
    refuse('not-found', `nothing in the workspace is named ${path}`)
  if (way === 'write' && !allows(folders, place, 'work'))
    refuse('forbidden', `${path} may not be written: it lies in an area that you may only read`)
}

type Access = 'list' | 'read' | 'write' | 'link'

const inRepository = ({ repos }: Around, path: string): boolean =>
  repos.some(repo => isWithin(repo, posix.normalize(path)))

/** The segments of a resolved path, below the real root. */
const placed = async (tree: Rooted, path: string, way: Access): Promise<Placed> => {
  const { around, documents } = tree
  if (documents && isWithin(documents.folder, posix.normalize(path))) return placedDocument(documents, path, way)
  if (around && !inRepository(around, path)) return placedAround(tree, around, path, way)
  const home = await realpath(tree.root)
  if (way === 'read' || way === 'list') {
    const segments = below(home, path === '.' ? home : await inside(home, path))
    refuseOutside(tree, path, segments, way)
    return { home, segments }
  }
  const named = segmentsOf(path, { existing: true })
  refuseClosed(path, named)
  const parent = posix.dirname(named.join('/'))
  const real =
    way === 'write'
      ? await inside(home, path, { allowMissing: true })
      : join(parent === '.' ? home : await inside(home, parent, { allowMissing: true }), named.at(-1)!)
  const segments = below(home, real)
  refuseOutside(tree, path, segments, 'write')
  refuseClosed(path, segments)
  await refuseNewName(path, real, segments)
  return { home, segments }
}

/** Resolves a path that lies outside the repositories, or leads into one of them. */
const placedAround = async (tree: Rooted, around: Around, path: string, way: Access): Promise<Placed> => {
  const { around: _, ...copy } = tree
  const writes = way === 'write' || way === 'link'
  const home = await realpath(around.workspace)
  const segments = below(home, path === '.' ? home : await inside(home, path, { allowMissing: writes }))
  const place = segments.join('/')
  if (inRepository(around, place)) return placed(copy, place, way)
  refuseOutside(tree, path, segments, way === 'list' ? 'list' : 'read')
  if (writes) refuse('forbidden', `${path} cannot be written: ${readOnlyAround(around)}`)
  return { home, segments }
}

/** Resolves a path in the folder of the turn's document, which no link leads out of. */
const placedDocument = async (
  { workspace, folder }: NonNullable<Rooted['documents']>,
  path: string,
  way: Access,
): Promise<Placed> => {
  const home = await realpath(workspace)
  const real = await inside(home, path, { allowMissing: way === 'write' || way === 'link' })
  const segments = below(home, real)
  if (!isWithin(folder, segments.join('/'))) refuse('not-found', `nothing in the workspace is named ${path}`)
  return { home, segments }
}

const below = (home: string, real: string): string[] => relative(home, real).split(sep).filter(Boolean)

/** The path by which system calls reach a name in an open folder. */
const through = (handle: FileHandle, path: string): string =>
  process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path

const within = async <T>(
  home: string,
  folders: readonly string[],
  make: boolean,
  work: (folder: string) => Promise<T>,
): Promise<T> => {
  const handles = [await open(home, constants.O_RDONLY | constants.O_DIRECTORY)]
  try {
    let path = through(handles[0]!, home)
    for (const folder of folders) {
      const next = join(path, folder)
      if (make) await mkdir(next).catch(error => (codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error)))
      const handle = await open(next, FOLDER)
      handles.push(handle)
      path = through(handle, next)
    }
    return await work(path)
  } finally {
    for (const handle of handles) await handle.close()
  }
}

/** How a path is opened: `link`: the link itself, not its target; `make`: creates missing folders. */
interface Way {
  readonly link?: boolean
  readonly make?: boolean
}

/** Runs `work` on a path that is to be written, in its open folder. */
export const at = async <T>(tree: Rooted, path: string, way: Way, work: (spot: Spot) => Promise<T>): Promise<T> => {
  const { home, segments } = await placed(tree, path, way.link ? 'link' : 'write')
  const name = segments.at(-1) ?? refuse('invalid', 'expected a path below the root, found the root itself')
  return within(home, segments.slice(0, -1), way.make ?? false, folder => work({ at: join(folder, name) }))
}

/** Runs `work` in an open folder; `shows` says which of its names the tree reaches, or contain reached paths. */
export const inTreeFolder = async <T>(
  tree: Rooted,
  path: string,
  work: (folder: string, shows: (name: string) => boolean) => Promise<T>,
): Promise<T> => {
  const { home, segments } = await placed(tree, path, 'list')
  return within(home, segments, false, folder =>
    work(folder, name => {
      const place = [...segments, name].join('/')
      return leads(tree.folders, place) && !tree.hidden?.some(each => isWithin(each, place))
    }),
  )
}

/** The real folder of a path, for running a command there. */
export const folderAt = async (tree: Rooted, path: string): Promise<string> => {
  const { segments } = await placed(tree, path, 'read')
  return join(await realpath(tree.root), ...segments)
}

/** The bytes of a file; refuses anything but a plain file, and files that are too large. */
export const readFound = async (path: string, named: string): Promise<FoundFileText> => {
  const handle = await open(path, FILE)
  try {
    const info = await handle.stat()
    if (info.isDirectory()) refuse('unprocessable', `expected a file, found the folder ${named}`)
    if (!info.isFile()) refuse('unprocessable', `expected a file, found a pipe, socket or device at ${named}`)
    const parts: Buffer[] = []
    let length = 0
    for (;;) {
      const part = Buffer.allocUnsafe(Math.min(Math.max(info.size - length, 0) + 1, 1024 * 1024))
      const { bytesRead } = await handle.read(part, 0, part.length)
      if (bytesRead === 0) return { bytes: Buffer.concat(parts), mode: info.mode & 0o777 }
      parts.push(part.subarray(0, bytesRead))
      length += bytesRead
      if (length <= MOST_BYTES && info.size <= MOST_BYTES) continue
      const found = `${named} has ${Math.max(info.size, length)} bytes`
      refuse('too-large', `${found}, and at most ${MOST_BYTES} can be read; use a command for a part of it`)
    }
  } finally {
    await handle.close()
  }
}

/** The name of the file of a whole output. */
export const WHOLE_OUTPUT = /^\d{1,9}\.txt$/

const refuseGone =
  (path: string) =>
  (error: unknown): never => {
    if (codeOf(error) === 'ENOENT') return refuse('not-found', `${path} is gone: only the newest outputs are kept`)
    throw error
  }

/** The bytes of a file anywhere in the tree, or of a whole output. */
export const readFileAt = async (tree: Rooted, path: string): Promise<FoundFileText> => {
  const { outputs } = tree
  const output = outputs !== undefined && path.startsWith(`${outputs}/`) ? path.slice(outputs.length + 1) : undefined
  if (output !== undefined && WHOLE_OUTPUT.test(output)) return readFound(path, path).catch(refuseGone(path))
  const { home, segments } = await placed(tree, path, 'read')
  const name = segments.at(-1) ?? refuse('unprocessable', 'expected a file, found the root folder')
  return within(home, segments.slice(0, -1), false, folder => readFound(join(folder, name), path))
}

/** Whether the path exists; a link counts, even without its target. */
export const isThere = async (path: string): Promise<boolean> => {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
}

/** The previous content of a file, if it existed, and the new one. */
export interface Replaced {
  readonly before?: Buffer
  readonly after: Uint8Array
}

/** Replaces a file atomically, or creates it; `next` gets the current content. Keeps the permission bits. */
export const replace = (tree: Rooted, path: string, next: (before?: Buffer) => Uint8Array): Promise<Replaced> =>
  at(tree, path, { make: true }, async spot => {
    const found = (await isThere(spot.at)) ? await readFound(spot.at, path) : undefined
    const after = next(found?.bytes)
    await writeAtomic(spot.at, after, { mode: found?.mode ?? 0o666 & ~process.umask() })
    return { ...(found && { before: found.bytes }), after }
  })

/** Removes the temporary file of an interrupted write to a path. */
export const sweepBeside = (root: string, path: string): Promise<void> =>
  at({ root }, path, {}, spot => sweepTemporary(dirname(spot.at)))

/** A hash of the current content of a path; undefined if it does not exist or is out of reach. */
export const stamp = async (tree: Rooted, path: string): Promise<string | undefined> => {
  try {
    return await at(tree, path, { link: true }, async spot => {
      const info = await lstat(spot.at)
      if (info.isDirectory()) return `folder ${info.ino}`
      const { bytes } = await readFileAt(tree, path)
      return createHash('sha256').update(bytes).digest('hex')
    })
  } catch (error) {
    if (error instanceof Refusal || codeOf(error) !== undefined) return undefined
    throw error
  }
}
