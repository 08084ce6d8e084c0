import { mkdir } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { contains } from '../files/paths.js'
import { real } from './sources.js'
import type { Mount } from './spec.js'

const WHY = 'kept in its place'

/** The mount that decides what is at a path, of those made so far: the last one around it. */
export const mountAround = (mounts: readonly Mount[], path: string): Mount | undefined =>
  mounts.findLast(([operation, , to]) => operation !== 'seal' && contains(to, path))

/** The folders strictly between a mount and a path below it, outermost first. */
const between = (from: string, path: string): string[] => {
  const folder = dirname(path)
  return folder === from ? [] : [...between(from, folder), folder]
}

/**
 * The same mounts, with every folder between a writable mount and a mount inside it mounted onto itself.
 *
 * A mount cannot be renamed, but the folders around it can, and with them it leaves its path: what is put there instead
 * is where the next wall would mount. A folder that is a mount itself stays.
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
