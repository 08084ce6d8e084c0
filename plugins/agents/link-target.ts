import { lstat, readlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, contains } from '../../sdk/node/paths.js'
import { neverWork } from './never-work.js'

const MOST_LINKS = 40

/** What a link holds, by its absolute path: those that are about to be made, before those on the disk. */
export interface PlannedLinks {
  readonly [path: string]: string
}

const linkAt = async (path: string, planned: PlannedLinks): Promise<string | undefined> => {
  if (Object.hasOwn(planned, path)) return planned[path]
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'ENAMETOOLONG'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}

/**
 * Whether a link leads out of the workspace, or into what there is nobody's work, once every link on its way is followed.
 *
 * `path` is where the link is to be; the folders above it are real ones.
 */
export const leadsOut = async (workspace: string, path: string, target: string, planned: PlannedLinks): Promise<boolean> => {
  let left = target.split('/')
  let at = target.startsWith('/') ? '/' : dirname(path)
  let followed = 0
  while (left.length > 0) {
    const segment = left.shift()!
    if (segment === '' || segment === '.') continue
    if (segment === '..') {
      at = dirname(at)
      continue
    }
    const next = join(at, segment)
    const link = await linkAt(next, planned)
    if (link === undefined) {
      at = next
      continue
    }
    if (++followed > MOST_LINKS) return true
    left = [...link.split('/'), ...left]
    if (link.startsWith('/')) at = '/'
  }
  if (!contains(workspace, at)) return true
  const inner = at.slice(workspace.length).replace(/^\//, '')
  return inner !== '' && neverWork('root', inner)
}
