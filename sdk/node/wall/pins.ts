import { mkdir } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { contains } from '../files/paths.js'
import { real } from './sources.js'
import type { Mount } from './spec.js'

const WHY = 'kept in its place'

/** The mount that determines a path: the last one that contains it. */
export const mountAround = (mounts: readonly Mount[], path: string): Mount | undefined =>
  mounts.findLast(([operation, , to]) => operation !== 'seal' && contains(to, path))

/** The folders strictly between a mount and a path below it, outermost first. */
const between = (from: string, path: string): string[] => {
  const folder = dirname(path)
  return folder === from ? [] : [...between(from, folder), folder]
}

/**
 * Adds mounts that bind every folder between a writable mount and a mount inside it onto itself.
 *
 * A mount point cannot be renamed, but its parent folders can: a turn could move them and put others there, where the
 * next wall would mount. A parent that is a mount itself cannot be moved.
 */
export const pinned = async (mounts: readonly Mount[]): Promise<Mount[]> => {
  const made: Mount[] = []
  for (const mount of mounts) {
    const [operation, , to] = mount
    if (operation !== 'seal') for (const pin of await pinsAround(made, to)) made.push(pin)
    made.push(mount)
  }
  return made
}

const pinsAround = async (made: readonly Mount[], to: string): Promise<Mount[]> => {
  const around = mountAround(made, dirname(to))
  if (!around) return []
  const [operation, from, base] = around
  if (operation === 'empty') return between(base, to).map(folder => ['empty', '', folder, WHY])
  if (operation !== 'bind') return []
  return Promise.all(
    between(base, to).map(async (folder): Promise<Mount> => {
      const source = join(from, relative(base, folder))
      await mkdir(source, { recursive: true, mode: 0o700 })
      return ['bind', await real(source), folder, WHY]
    }),
  )
}
