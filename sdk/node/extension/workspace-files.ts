import { lstat, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../refusal.js'
import {
  openExisting,
  openFile,
  openOwnFolder,
  openParent,
  openPath,
  type OpenedPath,
  type PathTree,
} from '../files/open-path.js'
import { writeAtomic } from '../files/files.js'
import { segmentsOf } from '../files/paths.js'
import { textOrBytes } from './bytes.js'
import { deny } from './denied.js'
import type { ManifestEntries } from './entries.js'
import type { HostOperations, OperationInput, OperationOutput } from './protocol.js'

/** The dependencies of accessing files of the workspace. */
export interface FileDeps {
  readonly workspace: string
  readonly entries: ManifestEntries
  /** Called when it used a declared entry. */
  readonly used: (entry: string) => void
}

type Mode = 'read' | 'write'
type Names = `files.${'read' | 'stat' | 'write' | 'list' | 'remove' | 'move'}`

/** The operations on files, by name. */
export type FileHandlers = {
  readonly [O in Names]: (input: OperationInput<HostOperations, O>) => Promise<OperationOutput<HostOperations, O>>
}

const MOST_READ = 7 * 1024 * 1024
const MOST_LISTED = 20_000

/** A path, and the tree to open it in: the folder of an extension is closed to all others. */
interface Place {
  readonly tree: PathTree
  readonly path: string
  /** The prefix of results: the path of the tree from the workspace's root. */
  readonly before: string
}

/** The operations on files of the workspace, each within the `fs:` entries. */
export const fileOperations = (deps: FileDeps): FileHandlers => {
  const { entries, used } = deps
  const allow = (mode: Mode, path: string): void => {
    const entry = entries.file(mode, path)
    if (entry === undefined) return deny(`fs:${mode}:${path}`)
    used(entry)
  }
  /** The target of a path must be allowed too, because a link may lead elsewhere in the workspace. */
  const allowFound = (mode: Mode, place: Place, found: Pick<OpenedPath, 'path'>): void =>
    allow(mode, place.before + (found.path === '.' ? '' : found.path))
  const allowBelow = (path: string): void => {
    if (!entries.holdsBelow('write', path)) deny(`fs:write:${path}/**`)
  }
  /** A folder is deleted with its contents. */
  const allowWhole = async (target: string, path: string): Promise<void> => {
    allow('write', path)
    if (await isFolder(target)) allowBelow(path)
  }
  const opened = async (mode: Mode, named: string): Promise<Place> => {
    const path = plain(named)
    allow(mode, path)
    return placeOf(deps, path)
  }
  return {
    'files.read': async ({ path, offset = 0, limit = MOST_READ }) => {
      const place = await opened('read', path)
      await using found = await openExisting(place.tree, place.path)
      allowFound('read', place, found)
      await using file = await openFile(found, path)
      const rest = Math.max(0, found.stats.size - offset)
      if (Math.min(limit, rest) > MOST_READ)
        refuse('too-large', `${path} is larger than ${MOST_READ} bytes: read it in parts with offset and limit`)
      const buffer = Buffer.alloc(Math.min(limit, rest))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, offset)
      return { bytes: buffer.subarray(0, bytesRead) }
    },
    'files.stat': async ({ path }) => {
      const place = await opened('read', path)
      await using found = await openPath(place.tree, place.path)
      if (!found) return {}
      allowFound('read', place, found)
      const { stats } = found
      if (!stats.isFile() && !stats.isDirectory()) return {}
      const type = stats.isDirectory() ? 'dir' : 'file'
      return { found: { type, size: stats.size, mtimeMs: stats.mtimeMs } }
    },
    'files.list': async ({ path }) => {
      const place = await listed(deps, plain(path))
      await using found = await openExisting(place.tree, place.path, { lists: true })
      if (!found.stats.isDirectory()) refuse('unprocessable', `expected a folder at ${path}, found a file`)
      const all = await readdir(found.at, { withFileTypes: true })
      const folder = place.before + (found.path === '.' ? '' : `${found.path}/`)
      const shown = all.flatMap(entry => {
        const type = entry.isDirectory() ? ('dir' as const) : entry.isFile() ? ('file' as const) : undefined
        const at = (folder + entry.name).replace(/\/$/, '')
        const readable = type && (entries.file('read', at) !== undefined || (type === 'dir' && entries.leads(at)))
        return readable ? [{ name: entry.name, type }] : []
      })
      if (shown.length > MOST_LISTED) refuse('too-large', `${path} has more than ${MOST_LISTED} entries`)
      return { entries: shown.sort((one, other) => (one.name < other.name ? -1 : 1)) }
    },
    'files.write': async ({ path, data }) => {
      const place = await opened('write', path)
      await using parent = await openParent(place.tree, place.path, { make: true })
      allow('write', place.before + join(parent.path, parent.name))
      await writeAtomic(parent.target, textOrBytes('data', data) as string, { mode: 0o644 })
      return {}
    },
    'files.remove': async ({ path }) => {
      const place = await opened('write', path)
      await using parent = await openParent(place.tree, place.path, { existing: true })
      await allowWhole(parent.target, place.before + join(parent.path, parent.name))
      await rm(parent.target, { recursive: true, force: true })
      return {}
    },
    'files.move': async ({ from, to }) => {
      const [source, target] = [await opened('write', from), await opened('write', to)]
      await using out = await openParent(source.tree, source.path, { existing: true })
      await using into = await openParent(target.tree, target.path, { make: true })
      const [old, moved] = [source.before + join(out.path, out.name), target.before + join(into.path, into.name)]
      await allowWhole(out.target, old)
      allow('write', moved)
      if (await isFolder(out.target)) allowBelow(moved)
      await rename(out.target, into.target)
      return {}
    },
  }
}

const isFolder = async (target: string): Promise<boolean> =>
  (await lstat(target).catch(() => undefined))?.isDirectory() ?? false

/** A path in its one form, from the root of the workspace. */
const plain = (path: string): string => (path === '.' ? '.' : segmentsOf(path, { existing: true }).join('/'))

const placeOf = async ({ workspace, entries }: FileDeps, path: string): Promise<Place> => {
  const own = entries.ownFolder
  if (path !== own && !path.startsWith(`${own}/`))
    return { tree: { root: workspace, reach: undefined, readsGit: false }, path, before: '' }
  await using _made = await openOwnFolder(workspace, own.split('/'))
  return {
    tree: { root: join(workspace, own), reach: undefined, readsGit: false },
    path: path.slice(own.length + 1) || '.',
    before: `${own}/`,
  }
}

/** A folder may be listed when an entry names something in it. */
const listed = async (deps: FileDeps, path: string): Promise<Place> => {
  if (deps.entries.file('read', path) === undefined && !deps.entries.leads(path)) deny(`fs:read:${path}`)
  return placeOf(deps, path)
}
