import { lstatSync, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { contains } from '../files/paths.js'
import type { Mount } from './spec.js'

/** Folders of the system, visible to every process; missing ones are skipped. */
const FOLDERS = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/opt',
  '/nix',
  '/gnu/store',
  '/run/current-system',
  '/etc',
]
const SETTINGS = '/etc'
const WHY = 'system'

/** How long the scan of `/etc` is cached, for its folders and its files. */
const FOLDERS_MS = 1_000
const FILES_MS = 60_000

const READ_BY_OTHERS = 0o004
const ENTERED_BY_OTHERS = 0o005

/** The parts of `/etc` that not all users may read, and when they were scanned. */
interface Closed {
  readonly mounts: readonly Mount[]
  /** The modification time of each folder. */
  readonly folders: ReadonlyMap<string, number>
  readonly scannedAt: number
  checkedAt: number
}

let closed: Closed | undefined

const changedAt = (path: string): number => lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0

const scan = (): Closed => {
  const mounts: Mount[] = []
  const folders = new Map<string, number>()
  const walk = (folder: string): void => {
    folders.set(folder, changedAt(folder))
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isSymbolicLink()) continue
      const mode = lstatSync(path, { throwIfNoEntry: false })?.mode
      if (mode === undefined) continue
      const open = entry.isDirectory() ? ENTERED_BY_OTHERS : READ_BY_OTHERS
      if ((mode & open) !== open)
        mounts.push([entry.isDirectory() ? 'empty' : 'hide', '', path, 'closed to other users'])
      else if (entry.isDirectory()) walk(path)
    }
  }
  walk(SETTINGS)
  return { mounts, folders, scannedAt: Date.now(), checkedAt: Date.now() }
}

const holds = (known: Closed): boolean => {
  const now = Date.now()
  if (now - known.scannedAt > FILES_MS) return false
  if (now - known.checkedAt < FOLDERS_MS) return true
  known.checkedAt = now
  return [...known.folders].every(([folder, at]) => changedAt(folder) === at)
}

/** Mounts that hide the parts of `/etc` that other users may not read: passwords, private keys, sudoers. */
const secretsOfSystem = (): readonly Mount[] => {
  if (!closed || !holds(closed)) closed = scan()
  return closed.mounts
}

/** The real path of `/etc/resolv.conf`. */
export const resolverPath = (): string | undefined => {
  try {
    return realpathSync('/etc/resolv.conf')
  } catch {
    return undefined
  }
}

/** Mounts `/etc/resolv.conf` if it links to a file outside the system's folders. */
const resolver = (): Mount[] => {
  const path = resolverPath()
  return path === undefined || FOLDERS.some(folder => contains(folder, path))
    ? []
    : [['show', path, path, 'name servers']]
}

/** The programs, libraries and settings of the system, read-only, without files that other users may not read. */
export const systemMounts = (): Mount[] => {
  const mounts: Mount[] = FOLDERS.flatMap((path): Mount[] => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (!found) return []
    return [found.isSymbolicLink() ? ['link', readlinkSync(path), path, WHY] : ['show', path, path, WHY]]
  })
  return [...mounts, ...secretsOfSystem(), ...resolver(), ['empty', '', '/var/tmp', WHY]]
}

/** Whether a path lies in a folder of the system. */
export const isOfSystem = (path: string): boolean => FOLDERS.some(folder => contains(folder, path))
