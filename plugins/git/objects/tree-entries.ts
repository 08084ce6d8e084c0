import type { RepoGit } from '../repositories/repo-git.js'

/** A path in a commit: a file, a link, a submodule or a folder. */
export interface TreeEntryAt {
  readonly mode: string
  readonly type: string
  readonly id: string
}

const LINK_MODE = '120000'
const MODULE_MODE = '160000'
const FOLDER_MODE = '40000'
const [SPACE, NUL] = [32, 0]

/**
 * The entry of a name in the content of a tree object; undefined: none.
 *
 * @param bytesOfId How long an id is: 20 bytes with SHA-1, 32 with SHA-256.
 */
export const entryIn = (tree: Buffer, name: string, bytesOfId: number): TreeEntryAt | undefined => {
  const wanted = Buffer.from(name)
  for (let at = 0; at < tree.length;) {
    const space = tree.indexOf(SPACE, at)
    const end = tree.indexOf(NUL, space)
    if (space < 0 || end < 0) return undefined
    const next = end + 1 + bytesOfId
    if (end - space - 1 === wanted.length && tree.compare(wanted, 0, wanted.length, space + 1, end) === 0) {
      const mode = tree.toString('latin1', at, space)
      const type = mode === FOLDER_MODE ? 'tree' : mode === MODULE_MODE ? 'commit' : 'blob'
      return { mode: mode.padStart(MODULE_MODE.length, '0'), type, id: tree.toString('hex', end + 1, next) }
    }
    at = next
  }
  return undefined
}

/** The entry at a path of a commit or a tree, from a git of its own. */
export const listedEntry = async (git: RepoGit, tree: string, path: string): Promise<TreeEntryAt | undefined> => {
  const { text } = await git.read(['ls-tree', '-z', '--full-tree', tree, '--', path])
  const record = text.split('\0').find(each => each.slice(each.indexOf('\t') + 1) === path)
  const [mode = '', type = '', id = ''] = record?.slice(0, record.indexOf('\t')).split(' ') ?? []
  return id === '' ? undefined : { mode, type, id }
}

/** Whether an entry is a submodule: a commit of another repository, without content here. */
export const isModule = ({ mode }: TreeEntryAt): boolean => mode === MODULE_MODE

/** Whether an entry is a symbolic link. */
export const isLink = ({ mode }: TreeEntryAt): boolean => mode === LINK_MODE
