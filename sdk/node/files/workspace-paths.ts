import { realpath, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { isClosedName } from './closed-names.js'
import { codeOf, contains, inside, segmentsOf } from './paths.js'

/** Where a path of the workspace really is. */
export type FoundPath =
  | { readonly kind: 'folder' | 'file' | 'closed'; readonly path: string }
  | { readonly kind: 'missing' | 'outside' }

const GONE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'EPERM', 'ENAMETOOLONG'])

/** Finds the real location of a workspace path, `.` for the root; refuses other paths. */
export const resolvePath = async (workspace: string, path: string): Promise<FoundPath> => {
  const segments = path === '.' ? [] : segmentsOf(path, { existing: true })
  try {
    const [home, real] = await Promise.all([realpath(workspace), realpath(join(workspace, ...segments))])
    if (!contains(home, real)) return { kind: 'outside' }
    const found = relative(home, real) || '.'
    if (isClosedName(found.split('/'))) return { kind: 'closed', path: found }
    return { kind: (await stat(real)).isDirectory() ? 'folder' : 'file', path: found }
  } catch (error) {
    if (GONE.has(codeOf(error) ?? '')) return { kind: 'missing' }
    throw error
  }
}

/** Real locations of workspace paths, each looked up once: for one request, or one reading of a list. */
export class WorkspacePaths {
  readonly #workspace: string
  readonly #known = new Map<string, Promise<string | undefined>>([['.', Promise.resolve('.')]])

  constructor(workspace: string) {
    this.#workspace = workspace
  }

  /** Where a path is or would be, the root when left out; undefined: nowhere in the workspace. */
  of(path = '.'): Promise<string | undefined> {
    const known = this.#known.get(path) ?? placeOf(this.#workspace, path)
    this.#known.set(path, known)
    return known
  }
}

/** Where a workspace path is or, where nothing has its name, would be; undefined: nowhere in the workspace. */
export const placeOf = async (workspace: string, path: string): Promise<string | undefined> => {
  if (path === '.') return '.'
  const [home, real] = await Promise.all([
    realpath(workspace).catch(() => undefined),
    inside(workspace, path, { allowMissing: true }).catch(() => undefined),
  ])
  return home !== undefined && real !== undefined ? relative(home, real) || '.' : undefined
}
