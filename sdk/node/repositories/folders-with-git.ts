import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { submoduleCheckouts } from './submodules.js'

/** Names of folders that package managers fill. */
export const DEPENDENCY_FOLDERS: ReadonlySet<string> = new Set(['node_modules', '.venv', 'vendor'])

/** Folders that are not searched for repositories. */
export const NOT_SEARCHED: ReadonlySet<string> = new Set([
  ...DEPENDENCY_FOLDERS,
  '.git',
  '.sandbox',
  'venv',
  '__pycache__',
  'target',
  'dist',
  'build',
  'out',
  '.cache',
  '.next',
  '.gradle',
  '.tox',
])

/** How many levels below the workspace root are searched for repositories. */
export const SEARCH_DEPTH = 6

/** How many folders are searched; the highest come first. */
export const MOST_SEARCHED = 50_000

/** The folders of a workspace with a `.git`, as paths from its root, parents first. Git may still reject them. */
export async function* foldersWithGit(workspace: string, deepest = SEARCH_DEPTH): AsyncGenerator<string> {
  let level = ['']
  let searched = 0
  const found: string[] = []
  for (let depth = 0; depth <= deepest && level.length; depth++) {
    const next: string[] = []
    for (const path of level) {
      if (++searched > MOST_SEARCHED) break
      const entries = await readdir(join(workspace, path), { withFileTypes: true }).catch(() => [])
      if (entries.some(entry => entry.name === '.git' && !entry.isSymbolicLink())) {
        found.push(path)
        yield path
      }
      for (const entry of entries)
        if (entry.isDirectory() && !NOT_SEARCHED.has(entry.name)) next.push(path ? `${path}/${entry.name}` : entry.name)
    }
    level = searched > MOST_SEARCHED ? [] : next
  }
  yield* await submoduleCheckouts(workspace, found)
}
