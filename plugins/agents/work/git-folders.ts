import { statSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'

/** The git dir of a checkout, and the common one that worktrees share. */
export interface GitFolders {
  readonly git: string
  readonly common: string
}

/** The HEAD of a checkout: its commit (absent before the first one) and its branch (absent if detached). */
export interface Head {
  readonly commit?: string
  readonly branch?: string
}

const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/
const DEPTH = 5

const MOST_PACKED = 64 * 1024 * 1024

/** The git dirs of a checkout, read without git; undefined if it is not a repository. */
export const gitFolders = (checkout: string): GitFolders | undefined => {
  const dot = join(checkout, '.git')
  const pointer = statSync(dot, { throwIfNoEntry: false })?.isFile() ? readPlain(dot) : undefined
  const named = pointer === undefined ? dot : /^gitdir: (.+?)\n?$/s.exec(pointer)?.[1]
  if (named === undefined) return undefined
  const git = isAbsolute(named) ? named : resolve(checkout, named)
  if (!statSync(join(git, 'HEAD'), { throwIfNoEntry: false })) return undefined
  const shared = readPlain(join(git, 'commondir'))?.trim()
  return { git, common: shared ? resolve(git, shared) : git }
}

/**
 * The git dirs of a repository of a conversation.
 *
 * @param module The git dir of a submodule that may not be checked out, as a path from the workspace root.
 */
export const gitFoldersOf = (
  { repo, module }: { readonly repo: string; readonly module?: string },
  main: string | undefined,
): GitFolders | undefined => {
  const found = main === undefined ? undefined : gitFolders(main)
  if (found || main === undefined || module === undefined) return found
  const git = join(main, ...repo.split('/').map(() => '..'), module)
  return statSync(join(git, 'HEAD'), { throwIfNoEntry: false }) ? { git, common: git } : undefined
}

interface Packed {
  readonly stamp: string
  readonly refs: ReadonlyMap<string, string>
}

const parsePacked = (text: string): Map<string, string> =>
  new Map(
    text.split('\n').flatMap(line => {
      const [commit = '', name] = line.split(' ')
      return name && COMMIT.test(commit) ? [[name, commit] as const] : []
    }),
  )

/**
 * Reads refs without starting git.
 *
 * Caches the parsed packed-refs file until its stamp changes.
 */
export class Refs {
  readonly #packed = new Map<string, Packed>()

  /** The commit of a full ref name. */
  commit(folders: GitFolders, name: string, depth = 0): string | undefined {
    if (depth > DEPTH || !/^refs\/[^\0]+$/.test(name) || name.split('/').includes('..')) return undefined
    const loose = readPlain(join(folders.common, name))?.trim()
    if (loose === undefined) return this.#packedRefs(folders.common).get(name)
    if (loose.startsWith('ref: ')) return this.commit(folders, loose.slice(5), depth + 1)
    return COMMIT.test(loose) ? loose : undefined
  }

  /** The HEAD of a checkout. */
  head(folders: GitFolders): Head {
    const text = readPlain(join(folders.git, 'HEAD'))?.trim() ?? ''
    if (COMMIT.test(text)) return { commit: text }
    const name = /^ref: (refs\/.+)$/.exec(text)?.[1]
    if (name === undefined) return {}
    const commit = this.commit(folders, name)
    return { branch: name.replace(/^refs\/heads\//, ''), ...(commit && { commit }) }
  }

  #packedRefs(common: string): ReadonlyMap<string, string> {
    const path = join(common, 'packed-refs')
    const stat = statSync(path, { throwIfNoEntry: false, bigint: true })
    const stamp = stat ? `${stat.ino} ${stat.size} ${stat.mtimeNs}` : ''
    const known = this.#packed.get(common)
    if (known?.stamp === stamp) return known.refs
    const refs = stat ? parsePacked(readPlain(path, MOST_PACKED) ?? '') : new Map<string, string>()
    this.#packed.set(common, { stamp, refs })
    return refs
  }
}

/** Files in the git dir that mark an unfinished operation, with its name. */
const OPERATIONS: readonly (readonly [mark: string, word: string])[] = [
  ['MERGE_HEAD', 'merge'],
  ['rebase-merge', 'rebase'],
  ['rebase-apply', 'rebase'],
  ['CHERRY_PICK_HEAD', 'cherry-pick'],
  ['REVERT_HEAD', 'revert'],
]

/** The unfinished operation of a checkout, such as `rebase`. */
export const operationIn = ({ git }: GitFolders): string | undefined =>
  OPERATIONS.find(([mark]) => statSync(join(git, mark), { throwIfNoEntry: false }))?.[1]
