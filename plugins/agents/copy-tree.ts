import { readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { copyPlain } from '../../sdk/node/files.js'
import type { Bench } from './bench.js'
import { gitFolders } from './git-folders.js'
import { neverWork } from './never-work.js'
import type { Repository } from './repository.js'

/** Whether a path is only shown in the copy: a link to the same path of the main checkout, as dependency folders are. */
const isShown = async (copy: string, main: string, path: string): Promise<boolean> =>
  (await readlink(join(copy, path)).catch(() => undefined)) === join(main, path)

/**
 * The tree of a private copy as its files are now, uncommitted work included.
 *
 * It is made on the bench: the copy, its index and its branch stay as they are, whoever works there meanwhile.
 */
export const treeOfCopy = async (bench: Bench, { checkout: { repo }, main, tip }: Repository, copy: string): Promise<string> => {
  const folders = gitFolders(copy)
  if (!folders) return tip
  const index = 'copy'
  if (!(await copyPlain(join(folders.git, 'index'), bench.index(index)))) await bench.git(['read-tree', tip], { index })
  const settings = [`core.excludesFile=${join(folders.common, 'info', 'exclude')}`]
  const listed = async (...args: string[]) =>
    (await bench.git(['ls-files', '-z', ...args], { index, tree: copy, settings })).text.split('\0').filter(path => path !== '')
  const candidates = new Set([...await listed('-m'), ...await listed('-o', '--exclude-standard')])
  const paths: string[] = []
  // A name that ends with a slash is a repository of its own.
  for (const path of candidates) {
    if (!path.endsWith('/') && !neverWork(repo, path) && !(await isShown(copy, main, path))) paths.push(path)
  }
  if (paths.length > 0) {
    const input = paths.map(path => `${path}\0`).join('')
    await bench.git(['update-index', '--add', '--remove', '--replace', '-z', '--stdin'], { index, tree: copy, input })
  }
  return (await bench.git(['write-tree'], { index })).text.trim()
}
