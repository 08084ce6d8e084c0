import { realpath } from 'node:fs/promises'
import { posix } from 'node:path'
import { Refusal } from '../../../sdk/index.js'
import { openFile, openPath } from '../../../sdk/node/files/open-path.js'
import type { PackageCheck } from './contract.js'

const SCRIPTS = ['typecheck', 'lint', 'test']
const MOST_PACKAGES = 20
const MOST_BYTES = 1024 * 1024

/** The declared checks of the packages that some files of a tree belong to. */
export const packageChecks = async (tree: string, paths: readonly string[]): Promise<PackageCheck[]> => {
  const root = await realpath(tree)
  const known = new Map<string, Promise<string | undefined>>()
  const scriptIn = (folder: string) => {
    const script = known.get(folder) ?? scriptOf(root, folder)
    known.set(folder, script)
    return script
  }
  const checks = new Map<string, string>()
  for (const path of paths) {
    const found = await packageAround(posix.dirname(path), scriptIn)
    if (found?.script) checks.set(found.folder, found.script)
    if (checks.size === MOST_PACKAGES) break
  }
  return [...checks].map(([folder, script]) => ({ folder, command: `npm run --silent ${script}` }))
}

/** The nearest package at or above a folder, with its check; `script` is empty where it declares none. */
const packageAround = async (
  folder: string,
  scriptIn: (folder: string) => Promise<string | undefined>,
): Promise<{ folder: string; script: string } | undefined> => {
  for (let at = folder; ; at = posix.dirname(at)) {
    const script = await scriptIn(at)
    if (script !== undefined) return { folder: at, script }
    if (at === '.' || at === '/') return undefined
  }
}

/** The check that a folder's package declares, or an empty text; undefined: there is no package. */
const scriptOf = async (root: string, folder: string): Promise<string | undefined> => {
  const path = posix.join(folder, 'package.json')
  try {
    await using place = await openPath({ root, reach: undefined, readsGit: false }, path)
    if (!place || place.stats.size > MOST_BYTES) return undefined
    const file = await openFile(place, path)
    try {
      const { scripts = {} } = JSON.parse(await file.readFile('utf8')) as { scripts?: { [name: string]: unknown } }
      return SCRIPTS.find(name => typeof scripts[name] === 'string') ?? ''
    } finally {
      await file.close()
    }
  } catch (error) {
    // A file that is no package, or whose path leads elsewhere.
    if (error instanceof SyntaxError || error instanceof TypeError || error instanceof Refusal) return undefined
    throw error
  }
}
