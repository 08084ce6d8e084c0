import { createHash } from 'node:crypto'
import { lstat, readdir } from 'node:fs/promises'
import { refuse } from '../../../sdk/index.js'
import { shownPath } from '../../../sdk/node/files/open-path.js'
import { codeOf } from '../../../sdk/node/files/paths.js'

const LENGTH = 22
const AT_ONCE = 64
const SLASH = Buffer.from('/')
/** What a repository's folder holds of work; git itself writes the rest whenever somebody looks. */
const OF_GIT = new Set(['HEAD', 'packed-refs', 'refs'])

/** What is at a path, with all below it. */
export interface StampedEntry {
  readonly stamp: string
  readonly files: number
  readonly bytes: number
}

interface Found {
  readonly path: Buffer
  readonly isFolder: boolean
  readonly bytes: number
  readonly line: string
}

/** Nothing, as it is stamped. */
export const NOTHING: StampedEntry = { stamp: 'absent', files: 0, bytes: 0 }

/** Every write of a file is another time of change, which no program can set; of a folder its entries tell. */
const foundAt = async (path: Buffer): Promise<Found | undefined> => {
  const stats = await lstat(path, { bigint: true }).catch((error: unknown) =>
    ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '') ? undefined : Promise.reject(error as Error),
  )
  if (!stats) return undefined
  const { mode, ino, dev, size, mtimeNs, ctimeNs } = stats
  const isFolder = stats.isDirectory()
  const what = isFolder ? [mode, ino, dev] : [mode, ino, dev, size, mtimeNs, ctimeNs]
  return { path, isFolder, bytes: stats.isFile() ? Number(size) : 0, line: what.join() }
}

/** Names what is at a place and below it: a later write, new file or removal has another stamp. */
export const seenAt = async (place: string): Promise<StampedEntry> => {
  const hash = createHash('sha256')
  let { files, bytes } = NOTHING
  const first = await foundAt(Buffer.from(place))
  if (!first) return NOTHING
  const waiting = [first]
  for (let one = waiting.pop(); one; one = waiting.pop()) {
    hash.update(one.path.subarray(first.path.length)).update(`\0${one.line}\0`)
    bytes += one.bytes
    if (!one.isFolder) {
      files += 1
      continue
    }
    const isGit = one.path.toString().endsWith('/.git')
    const names = (await readdir(one.path, { encoding: 'buffer' }))
      .filter(name => !isGit || OF_GIT.has(name.toString()))
      .sort(Buffer.compare)
    for (let at = 0; at < names.length; at += AT_ONCE) {
      const { path } = one
      const some = names.slice(at, at + AT_ONCE).map(name => foundAt(Buffer.concat([path, SLASH, name])))
      for (const found of await Promise.all(some)) if (found) waiting.push(found)
    }
  }
  return { stamp: hash.digest('base64url').slice(0, LENGTH), files, bytes }
}

/** Refuses to remove or replace something else than what somebody saw at a path. */
export const assertSeen = async (place: string, path: string, expect: string | undefined): Promise<void> => {
  if (expect === undefined) return
  const { stamp, files, bytes } = await seenAt(place)
  if (stamp === expect) return
  const what = stamp === NOTHING.stamp ? 'gone' : expect === NOTHING.stamp ? 'there by now' : 'not what was seen'
  refuse('conflict', `${shownPath(path)} is ${what}: look at it again`, { fields: { stamp, files, bytes } })
}
