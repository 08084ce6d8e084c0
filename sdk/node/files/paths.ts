import { lstat, realpath } from 'node:fs/promises'
import { isAbsolute, join, sep } from 'node:path'
import { refuse } from '../../refusal.js'

/** Whether a real absolute path is the root itself or lies below it. */
export const contains = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)

/** The code of a failed system call, such as `ENOENT`. */
export const codeOf = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code

const MOST_BYTES = 4096
const MOST_SEGMENT_BYTES = 255
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'EPERM', 'ENAMETOOLONG'])

/**
 * The segments of a workspace path, or the refusal that says what is wrong with it. One trailing `/` is dropped.
 *
 * A path of what is there may hold backslashes and control characters; a name that is to be created may not.
 */
export const segmentsOf = (path: string, { existing = false }: { existing?: boolean } = {}): string[] => {
  const wrong = (found: string) =>
    refuse('invalid', `expected a workspace path such as src/main.ts, found ${found}`, {
      errors: [{ path: 'path', expected: 'a relative path, separated by /, without empty, . or .. segments' }],
    })
  if (typeof path !== 'string' || path === '') wrong('nothing')
  if (Buffer.byteLength(path) > MOST_BYTES) wrong(`one of more than ${MOST_BYTES} bytes`)
  if (!path.isWellFormed()) wrong('one that is not Unicode')
  if (path.includes('\0')) wrong('one with a NUL')
  if (existing ? path.startsWith('\\\\') : path.includes('\\')) wrong('one with a backslash')
  if (isAbsolute(path) || /^[a-zA-Z]:([\\/]|$)/.test(path)) wrong('an absolute one')
  const segments = path.replace(/\/$/, '').split('/')
  for (const segment of segments) {
    if (segment === '') wrong('one with an empty segment')
    if (segment === '.' || segment === '..') wrong(`one with the segment ${segment}`)
    if (Buffer.byteLength(segment) > MOST_SEGMENT_BYTES) wrong(`a segment of more than ${MOST_SEGMENT_BYTES} bytes`)
  }
  return segments
}

/** The real path, or undefined when there is nothing to be reached there. */
const reached = async (path: string): Promise<string | undefined> => {
  try {
    return await realpath(path)
  } catch (error) {
    if (ABSENT.has(codeOf(error) ?? '')) return undefined
    throw error
  }
}

const exists = async (path: string): Promise<boolean> => {
  try {
    await lstat(path)
    return true
  } catch (error) {
    // A closed folder may hold the name: taking it for existing refuses, which is the safe answer.
    return codeOf(error) !== 'ENOENT'
  }
}

/**
 * The real absolute path of a workspace path, every link resolved; whatever leads outside the root is not found.
 *
 * With `allowMissing` the deepest folder that exists is resolved and the rest, which no link can be, is added to it.
 */
export const inside = async (root: string, path: string, options: { allowMissing?: boolean } = {}): Promise<string> => {
  const segments = segmentsOf(path, { existing: true })
  const absent = () => refuse('not-found', `nothing in the workspace is named ${path}`)
  const home = (await reached(root)) ?? absent()
  for (let kept = segments.length; kept >= 0; kept--) {
    const at = join(home, ...segments.slice(0, kept))
    const real = await reached(at)
    if (real === undefined) {
      // A name that is there and leads nowhere is a broken link or closed: writing through it could leave the root.
      if (!options.allowMissing || (await exists(at))) absent()
      continue
    }
    if (!contains(home, real)) absent()
    const rest = segments.slice(kept)
    // Names that are to be created are stricter than those that are there.
    if (rest.length > 0) segmentsOf(rest.join('/'))
    if (rest.length > 0 && !(await lstat(real)).isDirectory()) absent()
    return join(real, ...rest)
  }
  return absent()
}
