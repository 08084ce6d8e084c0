import { lstat, readlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { nameOfBytes, bytePath } from '../byte-names.js'
import { codeOf } from './paths.js'

/** As many links as a system follows for one path. */
const MOST_LINKS = 40
const NO_LINK = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'ENAMETOOLONG'])

/** What the link at an absolute path holds, read from the disk; undefined: there is no link. */
export const linkOnDisk = async (path: string): Promise<string | undefined> => {
  try {
    const place = bytePath(path)
    return (await lstat(place)).isSymbolicLink()
      ? nameOfBytes(await readlink(place, { encoding: 'buffer' }))
      : undefined
  } catch (error) {
    if (NO_LINK.has(codeOf(error) ?? '')) return undefined
    throw error
  }
}

/**
 * Every place on the way to where a link leads, the last of them its end; the last is undefined when no system follows
 * it to an end, because it leads in a circle.
 *
 * @param path Where the link is; the folders above it are real ones.
 * @param linkAt What the link at an absolute path holds; undefined: there is no link.
 */
export async function* wayOf(
  path: string,
  target: string,
  linkAt: (path: string) => Promise<string | undefined>,
): AsyncGenerator<string | undefined> {
  // The next segment is the last one: taking the first of many thousands would move them all.
  const left = target.split('/').reverse()
  let at = target.startsWith('/') ? '/' : dirname(path)
  let followed = 0
  yield at
  while (left.length > 0) {
    const segment = left.pop()!
    if (segment === '' || segment === '.') continue
    const next = segment === '..' ? dirname(at) : join(at, segment)
    const link = segment === '..' ? undefined : await linkAt(next)
    if (link === undefined) {
      yield (at = next)
      continue
    }
    if (++followed > MOST_LINKS) return yield undefined
    for (const one of link.split('/').reverse()) left.push(one)
    if (link.startsWith('/')) yield (at = '/')
  }
}
