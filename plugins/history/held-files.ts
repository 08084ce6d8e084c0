import { lstat, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isGitName, isOwnName } from '../../sdk/node/files/closed-names.js'

/** Larger files are not saved. */
const LARGEST = 50 * 1024 * 1024
const BATCH = 64

/** Folders that package managers and builds fill again, by name. */
const MADE = new Set(['node_modules', '.venv', 'venv', '__pycache__', '.cache', '.next', '.gradle', '.tox'])

/** Patterns that keep git from looking into them. */
export const MADE_PATTERNS: readonly string[] = [...MADE].map(name => `${name}/`)

const SECRET = /^(?:\.env(?:\..*)?|id_(?:rsa|dsa|ecdsa|ed25519)|.*\.(?:pem|key|p12|pfx|jks|keystore|ppk))$/i
const EXAMPLES = /^\.env\.(?:example|sample|template)$/i
const CONFIG = ['.sandbox', 'config']

/** Whether points save a path of a repository. */
export const isPointFile = (scope: string, path: string): boolean => {
  const segments = path.split('/')
  const name = segments.at(-1)!
  if (segments.some(segment => MADE.has(segment) || isGitName(segment))) return false
  if (scope === 'root' && segments[0] === 'refs') return false
  if (scope === 'root' && isOwnName(segments[0]!)) return CONFIG.every((part, at) => segments[at] === part)
  return !SECRET.test(name) || EXAMPLES.test(name)
}

/** Changed paths: those to store again, those that are no longer files, and the number of too large ones. */
export interface HeldPaths {
  readonly paths: readonly string[]
  readonly gone: readonly string[]
  readonly skipped: number
}

/** Groups changed paths by how a point handles them; names are bytes as Latin-1. */
export const heldOf = async (scope: string, dir: string, paths: readonly string[]): Promise<HeldPaths> => {
  const held: string[] = []
  const gone: string[] = []
  const folders = new Map<string, Promise<boolean>>()
  // A file behind a link belongs to another folder.
  const isFolder = (folder: string): Promise<boolean> => {
    const place = Buffer.from(folder, 'latin1')
    const known =
      folders.get(folder)
      ?? realpath(place, 'buffer').then(
        found => found.equals(place),
        () => false,
      )
    folders.set(folder, known)
    return known
  }
  let skipped = 0
  for (let at = 0; at < paths.length; at += BATCH) {
    const some = paths.slice(at, at + BATCH).filter(path => isPointFile(scope, Buffer.from(path, 'latin1').toString()))
    const found = await Promise.all(
      some.map(async path => {
        const place = join(Buffer.from(dir).toString('latin1'), path)
        return (await isFolder(dirname(place))) ? lstat(Buffer.from(place, 'latin1')).catch(() => undefined) : undefined
      }),
    )
    for (const [index, stat] of found.entries()) {
      if (stat === undefined || stat.isDirectory()) gone.push(some[index]!)
      else if (stat.size > LARGEST && stat.isFile()) skipped += 1
      else held.push(some[index]!)
    }
  }
  return { paths: held, gone, skipped }
}
