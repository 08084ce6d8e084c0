import { isUtf8 } from 'node:buffer'
import { lstatSync, readdirSync, readlinkSync, realpathSync, statSync, type Dirent, type Stats } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { accessTo, leads } from '../../../sdk/index.js'
import { closedAs } from '../../../sdk/node/files/closed-names.js'
import { isTemporary } from '../../../sdk/node/files/files.js'
import { codeOf, contains } from '../../../sdk/node/files/paths.js'
import type { OpenedPath, PathTree } from '../../../sdk/node/files/open-path.js'
import type { WorkspaceEntry } from './contract.js'
import { isIgnored, pathIn, type IgnoreScope } from './ignore-rules.js'

/** A name of a folder as the system lists it. */
export interface ListedName {
  readonly name: string
  readonly lossy: boolean
  readonly folder: boolean
  readonly link: boolean
}

/** An entry of a listing, and the real location of its folder if it can be opened. */
export interface ListedEntry {
  readonly entry: WorkspaceEntry
  readonly opens?: string
}

/** An open folder: by which system calls reach it, and its real location as a path from the root. */
export type FolderPlace = Pick<OpenedPath, 'at' | 'path'>

const BATCH = 128

const byName = (one: ListedName, other: ListedName): number =>
  one.name < other.name ? -1 : one.name > other.name ? 1 : 0

const listed = (found: Dirent<Buffer>): ListedName => ({
  name: found.name.toString(),
  lossy: !isUtf8(found.name),
  folder: found.isDirectory(),
  link: found.isSymbolicLink(),
})

const listedText = (found: Dirent): ListedName => ({
  name: found.name,
  lossy: false,
  folder: found.isDirectory(),
  link: found.isSymbolicLink(),
})

const shownNames = ({ reach }: PathTree, path: string, found: readonly ListedName[]): ListedName[] => {
  const names = found.filter(({ name }) => !isTemporary(name))
  return (reach ? names.filter(({ name }) => leads(reach, pathIn(path, name))) : names).sort(byName)
}

const orUnreadable = (error: unknown): [] => {
  if (['EACCES', 'EPERM', 'ENOENT'].includes(codeOf(error) ?? '')) return []
  throw error
}

/**
 * The names in an open folder that a reach shows, sorted; none if it cannot be read. Temporary files of writes are
 * left out.
 */
export const listedNames = async (tree: PathTree, { at, path }: FolderPlace): Promise<ListedName[]> => {
  const found = await readdir(at, { withFileTypes: true, encoding: 'buffer' }).catch(orUnreadable)
  return shownNames(tree, path, found.map(listed))
}

/** As `listedNames`, at once: for one of many folders, where waiting for each would take most of the time. */
export const listedNamesNow = (tree: PathTree, { at, path }: FolderPlace): ListedName[] => {
  try {
    const text = readdirSync(at, { withFileTypes: true }).map(listedText)
    // A replaced byte shows as this sign; reading text takes half the time of reading bytes.
    const lossy = text.some(({ name }) => name.includes('\ufffd'))
    const found = lossy ? readdirSync(at, { withFileTypes: true, encoding: 'buffer' }).map(listed) : text
    return shownNames(tree, path, found)
  } catch (error) {
    return orUnreadable(error)
  }
}

/** Of names sorted by name, folders first. */
export const foldersFirst = (names: readonly ListedName[]): ListedName[] => [
  ...names.filter(({ folder }) => folder),
  ...names.filter(({ folder }) => !folder),
]

interface Target {
  readonly type: 'file' | 'dir'
  readonly link: { to: string; state?: 'broken' | 'outside' }
  /** Its real location; absent: broken, outside or closed. */
  readonly path?: string
  readonly closed?: true
}

const targetOf = ({ root, reach }: PathTree, place: string): Target => {
  const to = readlinkSync(place)
  let real: string
  let stats: Stats
  try {
    real = realpathSync.native(place)
    stats = statSync(real)
  } catch {
    // Only callers who see everything may see where it would lead.
    return { type: 'file', link: { to: reach ? '' : to, state: 'broken' } }
  }
  const type = stats.isDirectory() ? 'dir' : 'file'
  if (!contains(root, real)) return reach ? HIDDEN : { type, link: { to, state: 'outside' } }
  const path = relative(root, real) || '.'
  if (accessTo(reach, path) === undefined) return HIDDEN
  const closed = closedAs(path === '.' ? [] : path.split('/'))
  return { type, link: { to }, path, ...(closed === 'closed' && { closed: true }) }
}

/** A link as shown to callers who may not see its target. */
const HIDDEN: Target = { type: 'file', link: { to: '', state: 'outside' } }

/** The folder of a listing. */
export interface ListingFolder {
  readonly tree: PathTree
  readonly opened: FolderPlace
  /** The folder as the caller names it: of a link it is not its real location. */
  readonly named: string
  readonly scope: IgnoreScope
}

const entryOf = ({ tree, opened, named, scope }: ListingFolder, found: ListedName): ListedEntry | undefined => {
  const { name, lossy } = found
  const path = pathIn(named, name)
  const real = pathIn(opened.path, name)
  if (lossy) return { entry: { name, path, type: found.folder ? 'dir' : 'file', lossy: true } }
  const place = join(opened.at, name)
  const closed = closedAs(real.split('/'))
  const shut = closed === 'closed' || (closed === 'git' && !tree.readsGit)
  const ignored = shut || closed === 'git' || isIgnored(scope, real, found.folder)
  const marks = { ...(ignored && !shut && { ignored }), ...(shut && { closed: true as const }) }
  if (found.link) {
    const { type, link, path: target, closed: inClosed } = targetOf(tree, place)
    const opens = type === 'dir' && target !== undefined && !inClosed && !ignored
    const entry = { name, path, type, ...marks, link, ...(inClosed && { closed: inClosed }) }
    return { entry, ...(opens && { opens: target }) }
  }
  if (found.folder) return { entry: { name, path, type: 'dir', ...marks }, ...(!shut && { opens: real }) }
  const stats = lstatSync(place, { throwIfNoEntry: false })
  if (!stats) return undefined
  return { entry: { name, path, type: 'file', ...(stats.isFile() && { size: stats.size }), ...marks } }
}

/** The entries of some names of a folder, without deleted ones. */
export const listedEntries = async (folder: ListingFolder, names: readonly ListedName[]): Promise<ListedEntry[]> => {
  const entries: ListedEntry[] = []
  for (const [at, name] of names.entries()) {
    if (at % BATCH === BATCH - 1) await new Promise<void>(resolve => setImmediate(resolve))
    try {
      const entry = entryOf(folder, name)
      if (entry) entries.push(entry)
    } catch (error) {
      if (codeOf(error) === undefined) throw error
    }
  }
  return entries
}
