import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Folders that a package manager fills, by name. */
export const DEPENDENCY_FOLDERS: ReadonlySet<string> = new Set(['node_modules', '.venv', 'vendor'])

/** Folders in which no repository of a workspace is looked for. */
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

/** How many folders below the workspace root a repository is looked for. */
export const SEARCH_DEPTH = 4

/**
 * The folders of a workspace that hold a `.git`, as paths from its root, parents first; git may know better what it is.
 */
export async function* foldersWithGit(workspace: string, deepest = SEARCH_DEPTH): AsyncGenerator<string> {
  let level = ['']
  for (let depth = 0; depth <= deepest && level.length; depth++) {
    const next: string[] = []
    for (const path of level) {
      const entries = await readdir(join(workspace, path), { withFileTypes: true }).catch(() => [])
      if (entries.some(entry => entry.name === '.git' && !entry.isSymbolicLink())) yield path
      for (const entry of entries)
        if (entry.isDirectory() && !NOT_SEARCHED.has(entry.name)) next.push(path ? `${path}/${entry.name}` : entry.name)
    }
    level = next
  }
}
