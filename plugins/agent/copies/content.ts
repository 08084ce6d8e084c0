import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { pathOf } from '../../../sdk/node/repositories/main-repository.js'
import type { TreeContent } from '../contract.js'
import { changesInTree, type Tree } from './tree.js'

const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
/** Of a larger file its size and time count. */
const MOST_BYTES = 64 * 1024 * 1024
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EACCES'])

/** The content of some trees in a folder; `bases` are the commits that they were made from. */
export const treeContentOf = async (
  dir: string,
  trees: readonly Tree[],
  bases: ReadonlyMap<string, string>,
): Promise<TreeContent> => {
  const all = createHash('sha256')
  let untouched = true
  for (const tree of trees) {
    const { head, changes } = await changesInTree(tree)
    untouched &&= changes.length === 0 && head === bases.get(tree.repo)
    all.update(`${tree.repo}\0${head}\0`)
    for (const { line, path } of changes) all.update(`${line}\0${await stampOf(join(dir, pathOf(tree.repo), path))}\0`)
  }
  return { hash: all.digest('hex'), untouched }
}

/** A hash of a working file; of a folder, which is a repository of its own, and what is gone, only what it is. */
const stampOf = async (path: string): Promise<string> => {
  try {
    const found = await lstat(path)
    if (found.isSymbolicLink()) return `link ${await readlink(path)}`
    if (!found.isFile()) return 'other'
    if (found.size > MOST_BYTES) return `large ${found.size} ${found.mtimeMs}`
    await using handle = await open(path, FILE)
    return createHash('sha256')
      .update(await handle.readFile())
      .digest('hex')
  } catch (error) {
    if (ABSENT.has(codeOf(error) ?? '')) return 'absent'
    throw error
  }
}
