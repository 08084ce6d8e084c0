import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
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
const WITHOUT_SECRETS = 'system, without what other users may not read'

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

/**
 * The programs, libraries and settings of the system, read-only.
 *
 * @param settings The copy of `/etc` to show, without files that other users may not read; absent: all of it, for a
 *   program that this machine and the daemon trust.
 */
export const systemMounts = (settings?: string): Mount[] => {
  const mounts: Mount[] = FOLDERS.flatMap((path): Mount[] => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (!found) return []
    if (path === SETTINGS && settings !== undefined) return [['show', settings, path, WITHOUT_SECRETS]]
    return [found.isSymbolicLink() ? ['link', readlinkSync(path), path, WHY] : ['show', path, path, WHY]]
  })
  return [...mounts, ...resolver(), ['empty', '', '/var/tmp', WHY]]
}

/** Whether a path lies in a folder of the system. */
export const isOfSystem = (path: string): boolean => FOLDERS.some(folder => contains(folder, path))
