import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { contains } from '../../../sdk/node/files/paths.js'
import { pathOf } from '../../../sdk/node/repositories/main-repository.js'
import { inTree, type Tree } from './tree.js'

/** The mode of a pointer to a commit of another repository, in every version of an index (gitformat-index(5)). */
const POINTER = Buffer.from([0, 0, 0xe0, 0])
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const MOST_FILES = 100
/** A turn can write an index of any size: of a larger one git says itself what it holds. */
const MOST_BYTES = 64 * 1024 * 1024

/** Whether the index of a git dir can hold pointers to other repositories; false is certain. */
const mayPoint = async (gitdir: string): Promise<boolean> => {
  let left = MOST_BYTES
  for (const name of await readdir(gitdir)) {
    if (name !== 'index' && !name.startsWith('sharedindex.')) continue
    await using file = await open(join(gitdir, name), FILE)
    const found = await file.stat()
    if (!found.isFile()) continue
    left -= found.size
    if (left < 0 || (await file.readFile()).includes(POINTER)) return true
  }
  return false
}

/**
 * The folders of a tree for which it has only a pointer, because their files are those of another repository, and this
 * is not in the copy: a submodule that is not there, or a repository that the turn made.
 */
export const pointedFolders = async (tree: Tree, gitdir: string): Promise<string[]> => {
  if (!(await mayPoint(gitdir).catch(() => true))) return []
  const { text } = await inTree(tree, ['ls-files', '-s', '-z'])
  const paths = text
    .split('\0')
    .flatMap(record => (record.startsWith('160000 ') ? [record.slice(record.indexOf('\t') + 1)] : []))
  return [...new Set(paths)].filter(path => !tree.foreign.some(each => contains(each, path)))
}

/** A submodule of which a branch has moved the pointer, and the commit that it points to now. */
export interface MovedPointer {
  readonly path: string
  readonly to: string
}

/** The submodules of which a branch has moved the pointers since it began. */
export const movedPointers = async (tree: Tree, gitdir: string, base: string, tip: string): Promise<MovedPointer[]> => {
  if (base === tip || !(await mayPoint(gitdir).catch(() => true))) return []
  const args = ['diff-tree', '-r', '-z', '--no-renames', '--no-abbrev', '--ignore-submodules=none', base, tip]
  const fields = (await inTree(tree, args, { ok: [0, 128] })).text.split('\0')
  return fields.flatMap((field, at) => {
    const to = /^:160000 160000 \S+ (\S+) /.exec(field)?.[1]
    return to === undefined ? [] : [{ path: fields[at + 1] ?? '', to }]
  })
}

/** Whether a tree has a pointer to another repository at a path. */
export const isPointed = async (tree: Tree, path: string): Promise<boolean> =>
  (await inTree(tree, ['ls-files', '-s', '-z', '--', `:(top,literal)${path}`])).text.startsWith('160000 ')

/** The files at or below these paths of a tree in the folder of its copy, about the first 100; not those of git. */
export const filesAt = async (
  dir: string,
  { repo }: Pick<Tree, 'repo'>,
  paths: readonly string[],
): Promise<string[]> => {
  const found: string[] = []
  const walk = async (path: string): Promise<void> => {
    const entries = await readdir(join(dir, path), { withFileTypes: true }).catch(() => undefined)
    if (!entries) found.push(path)
    for (const entry of entries ?? []) {
      if (found.length >= MOST_FILES) return
      if (entry.name === '.git') continue
      if (entry.isDirectory()) await walk(`${path}/${entry.name}`)
      else found.push(`${path}/${entry.name}`)
    }
  }
  for (const path of paths) await walk(join(pathOf(repo), path))
  return found
}
