import { copyFile, lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../sdk/node/paths.js'
import type { Bench } from './bench.js'
import { gitFolders } from './git-folders.js'
import { neverWork } from './never-work.js'

/** Folders of dependencies that the engine shows in a copy; a link of that name is nobody's work. */
const DEPENDENCIES = new Set(['node_modules', '.venv', 'venv', 'vendor'])

const isShown = async (copy: string, path: string): Promise<boolean> => {
  if (!DEPENDENCIES.has(path.split('/').at(-1)!)) return false
  return (await lstat(join(copy, path)).catch(() => undefined))?.isSymbolicLink() ?? false
}

/**
 * The tree of a private copy as its files are now, uncommitted work included.
 *
 * It is made on the bench: the copy, its index and its branch stay as they are, whoever works there meanwhile.
 */
export const treeOfCopy = async (bench: Bench, repo: string, copy: string, tip: string): Promise<string> => {
  const folders = gitFolders(copy)
  if (!folders) return tip
  const index = 'copy'
  try {
    await copyFile(join(folders.git, 'index'), bench.index(index))
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    await bench.git(['read-tree', tip], { index })
  }
  const settings = [`core.excludesFile=${join(folders.common, 'info', 'exclude')}`]
  const listed = async (...args: string[]) =>
    (await bench.git(['ls-files', '-z', ...args], { index, tree: copy, settings })).text.split('\0').filter(path => path !== '')
  const candidates = new Set([...await listed('-m'), ...await listed('-o', '--exclude-standard')])
  const paths: string[] = []
  // A name that ends with a slash is a repository of its own.
  for (const path of candidates) if (!path.endsWith('/') && !neverWork(repo, path) && !(await isShown(copy, path))) paths.push(path)
  if (paths.length > 0) {
    const input = paths.map(path => `${path}\0`).join('')
    await bench.git(['update-index', '--add', '--remove', '--replace', '-z', '--stdin'], { index, tree: copy, input })
  }
  return (await bench.git(['write-tree'], { index })).text.trim()
}
