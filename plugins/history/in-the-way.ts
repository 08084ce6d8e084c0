import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { codeOf } from '../../sdk/node/files/paths.js'
import type { TreePath } from './scope-store.js'

/** The most paths that are named. */
const MOST = 10

/**
 * What lies on the disk where a restore would add files, and no point holds: git would remove it for them.
 *
 * @param dir The folder of the repository.
 * @param changes What the restore would change.
 */
export const inTheWay = async (dir: string, changes: readonly TreePath[]): Promise<string[]> => {
  const held = new Set(changes.flatMap(({ path, status }) => (status === 'deleted' ? [path] : [])))
  const found = new Set<string>()
  for (const { path, status } of changes) {
    if (status !== 'added') continue
    for (const each of await unheldAt(dir, path, held)) found.add(each)
    if (found.size >= MOST) break
  }
  return [...found].slice(0, MOST)
}

const unheldAt = async (dir: string, path: string, held: ReadonlySet<string>): Promise<string[]> => {
  try {
    const there = await lstat(join(dir, path))
    if (!there.isDirectory()) return [path]
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    if (codeOf(error) !== 'ENOTDIR') throw error
    return unheldAbove(dir, path, held)
  }
  return unheldBelow(dir, path, held)
}

/** The file in the place of a folder above a path. */
const unheldAbove = async (dir: string, path: string, held: ReadonlySet<string>): Promise<string[]> => {
  const above = posix.dirname(path)
  if (above === '.') return []
  const there = await lstat(join(dir, above)).catch(() => undefined)
  if (!there) return unheldAbove(dir, above, held)
  return there.isDirectory() || held.has(above) ? [] : [above]
}

const unheldBelow = async (dir: string, folder: string, held: ReadonlySet<string>): Promise<string[]> => {
  const entries: Dirent[] = await readdir(join(dir, folder), { withFileTypes: true })
  const found: string[] = []
  for (const entry of entries) {
    if (found.length >= MOST) break
    const path = posix.join(folder, entry.name)
    if (entry.isDirectory()) found.push(...(await unheldBelow(dir, path, held)))
    else if (!held.has(path)) found.push(path)
  }
  return found
}
