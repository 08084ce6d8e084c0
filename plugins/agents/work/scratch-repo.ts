import { lstat, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bytesOfName } from '../../../sdk/node/byte-names.js'
import { git, type GitAnswer } from '../../../sdk/node/programs/git.js'
import type { GitFolders } from './git-folders.js'
import { copyPlain, readPlain } from '../../../sdk/node/files/files.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { conversionOf, KEEP_POINTERS, type Conversion } from '../../../sdk/node/repositories/conversion.js'
import type { WallSpec } from '../../../sdk/node/wall/wall.js'
import { withFilters } from './filters.js'
import { linkObjects } from './own-objects.js'

/** The workspace and the daemon's folders, for the wall of filters. */
export type FilterWall = Pick<WallSpec, 'workspace' | 'data' | 'hide' | 'grants'>

/** Options of one command in the scratch repository. */
export interface ScratchRepoOptions {
  /** The name of the index to use. */
  readonly index?: string
  /** The working tree; default: an empty folder. */
  readonly tree?: string
  /** In a text names keep their bytes (`nameOfBytes`). */
  readonly input?: string | Uint8Array
  readonly ok?: readonly number[]
  readonly settings?: readonly string[]
  /** The command knows no literal pathspecs. */
  readonly magic?: true
}

/** The cache of scratch repositories: git's answers and indexes of commits, which never change. */
export interface ScratchCache {
  /** The cached answer to a question. */
  answer(question: string): GitAnswer | undefined
  /** Caches an answer. */
  keep(question: string, answer: GitAnswer): void
  /** Copies the cached index of a commit to a path, if there is one. */
  takeIndex(commit: string, path: string): Promise<boolean>
  /** Caches the index of a commit. */
  keepIndex(commit: string, path: string): Promise<void>
}

const MAX_BYTES = 512 * 1024 * 1024
/** Of a larger index, which a turn may have written, no copy is made. */
const MOST_INDEX = 512 * 1024 * 1024

/** Settings of a scratch repository where the person's git has none. */
const FORMS: readonly (readonly [name: string, value: string])[] = [
  ['core.filemode', 'true'],
  ['core.symlinks', 'true'],
]
/** What only the person's own index needs. */
const NOT_HERE = /sparse/

const quoted = (path: string): string => `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`

/**
 * A git dir of the daemon that borrows a repository's objects, to compare and create commits, trees and patches.
 *
 * Never writes to the repository and ignores its hooks and worktree attributes: git reads only what the daemon put
 * here, so it cannot be made to run a program. Of its settings it has those of line ends and modes. Filters run behind
 * a wall, by `convert`.
 */
export class ScratchRepo {
  readonly folder: string
  /** How the person's git converts files. */
  readonly conversion: Conversion
  /** The wall of git in the person's checkout. */
  readonly personWall: FilterWall
  readonly #wall: Omit<WallSpec, 'cwd' | 'env'>
  readonly #gitdir: string
  readonly #env: { readonly [name: string]: string }
  readonly #signal: AbortSignal | undefined
  readonly #empty: string
  readonly #kept: ScratchCache
  readonly #repository: string
  readonly #asked = new Map<string, Promise<GitAnswer>>()

  private constructor(
    folder: string,
    env: { readonly [name: string]: string },
    kept: ScratchCache,
    repository: string,
    conversion: Conversion,
    { git: gitdir, common }: GitFolders,
    wall: FilterWall,
    signal?: AbortSignal,
  ) {
    this.folder = folder
    this.conversion = conversion
    this.#gitdir = gitdir
    // Filters read the repository and write here alone.
    const exposed = [folder, ...(contains(wall.data, common) ? [common] : [])]
    this.personWall = wall
    this.#wall = { ...wall, exposed, sealed: true, readOnly: [common], offline: true }
    this.#env = env
    this.#kept = kept
    this.#repository = repository
    this.#signal = signal
    this.#empty = join(folder, 'empty')
  }

  /**
   * Creates a scratch repository in a folder of the daemon.
   *
   * @param commit A commit id, which determines the repository's hash algorithm.
   * @param repository A key of the repository in its current state, for the cache.
   * @param copy The git dir of a private copy whose objects to include.
   */
  static async open(
    parent: string,
    folders: GitFolders,
    commit: string,
    kept: ScratchCache,
    repository: string,
    wall: FilterWall,
    copy?: string,
    signal?: AbortSignal,
  ): Promise<ScratchRepo> {
    await mkdir(parent, { recursive: true, mode: 0o700 })
    const folder = await mkdtemp(join(parent, 'bench-'))
    const own = join(folder, 'git')
    const wide = commit.length === 64
    const conversion = await conversionOf({ gitdir: folders.git, common: folders.common })
    for (const part of [join(own, 'objects'), join(own, 'refs'), join(own, 'info'), join(folder, 'empty')])
      await mkdir(part, { recursive: true })
    await writeFile(join(own, 'info/attributes'), readPlain(join(folders.common, 'info/attributes')) ?? '')
    await writeFile(join(folder, 'attributes.shared'), conversion.attributes)
    // The key of git-crypt(1), which reads it there.
    await symlink(join(folders.common, 'git-crypt'), join(own, 'git-crypt'))
    await writeFile(join(own, 'HEAD'), 'ref: refs/heads/bench\n')
    await writeFile(
      join(own, 'config'),
      [
        '[core]',
        `repositoryformatversion = ${wide ? 1 : 0}`,
        'bare = false',
        'safecrlf = false',
        ...[...FORMS, ...conversion.forms]
          .filter(([name]) => name.startsWith('core.') && !NOT_HERE.test(name))
          .map(([name, value]) => `${name.slice('core.'.length)} = ${quoted(value)}`),
        // Names are checked before; names that only other systems misread are allowed.
        'protectHFS = false',
        'protectNTFS = false',
        ...(wide ? ['[extensions]', 'objectFormat = sha256'] : []),
        '',
      ].join('\n'),
    )
    const borrowed = [join(folders.common, 'objects')]
    const objects = join(folder, 'objects')
    // Objects written by a turn may be forged, so answers about them are cached for this copy only.
    const apart = copy !== undefined && (await linkObjects(copy, objects)) > 0
    if (apart) borrowed.push(objects)
    return new ScratchRepo(
      folder,
      {
        GIT_DIR: own,
        GIT_ALTERNATE_OBJECT_DIRECTORIES: borrowed.map(quoted).join(':'),
        GIT_SHALLOW_FILE: join(folders.common, 'shallow'),
        GIT_NO_REPLACE_OBJECTS: '1',
        GIT_LITERAL_PATHSPECS: '1',
      },
      kept,
      apart ? `${repository}\0${copy}` : repository,
      conversion,
      folders,
      wall,
      signal,
    )
  }

  /** Runs one git command in the scratch repository. */
  async git(
    args: readonly string[],
    options: ScratchRepoOptions = {},
    wall?: Omit<WallSpec, 'cwd' | 'env'>,
  ): Promise<GitAnswer> {
    const tree = options.tree ?? this.#empty
    const settings = [`core.attributesFile=${join(this.folder, 'attributes.shared')}`, ...(options.settings ?? [])]
    return git(tree, [...settings.flatMap(setting => ['-c', setting]), ...args], {
      ...(wall && { wall, priority: 'own' }),
      env: {
        ...this.#env,
        ...KEEP_POINTERS,
        GIT_WORK_TREE: tree,
        ...(options.magic && { GIT_LITERAL_PATHSPECS: '0' }),
        ...(options.index && { GIT_INDEX_FILE: this.index(options.index) }),
      },
      maxBytes: MAX_BYTES,
      ...(options.input !== undefined && {
        input: typeof options.input === 'string' ? bytesOfName(options.input) : options.input,
      }),
      ...(options.ok && { ok: options.ok }),
      ...(this.#signal && { signal: this.#signal }),
    })
  }

  /**
   * Runs a command that converts working files, whose paths are its input: behind a wall if a filter is to run.
   *
   * Returns whether all of them ran: those whose programs are missing did not.
   *
   * @param attributes Where the attributes that choose filters are: in the index, or also in the working tree.
   */
  async convert(
    args: readonly string[],
    paths: readonly string[],
    options: Omit<ScratchRepoOptions, 'input'> & { readonly index: string; readonly tree: string },
    attributes: 'index' | 'tree' = 'index',
  ): Promise<boolean> {
    if (paths.length === 0) return true
    const all = { ...options, input: paths.map(path => `${path}\0`).join('') }
    // A copy lies in the data folder, of which a wall shows nothing else.
    const shown = contains(this.folder, options.tree) ? [] : [{ from: options.tree, to: options.tree }]
    const wall = { ...this.#wall, shown }
    return withFilters(this.conversion.filters, {
      used: async () => {
        const how = ['check-attr', '-z', '--stdin', ...(attributes === 'index' ? ['--cached'] : []), 'filter']
        const { text } = await this.git(how, all)
        return text.split('\0').filter((_, at) => at % 3 === 2)
      },
      plain: () => this.git(args, all),
      walled: settings => this.git(args, { ...all, settings: [...(options.settings ?? []), ...settings] }, wall),
    })
  }

  /** Runs a command about commits and trees, with a cached answer: they never change. */
  once(args: readonly string[], options: Pick<ScratchRepoOptions, 'ok'> = {}): Promise<GitAnswer> {
    const question = [this.#repository, ...args].join('\0')
    const known = this.#kept.answer(question)
    if (known) return Promise.resolve(known)
    const asked =
      this.#asked.get(question)
      ?? this.git(args, options).then(answer => {
        this.#kept.keep(question, answer)
        return answer
      })
    this.#asked.set(question, asked)
    return asked
  }

  /** Copies the index of the person's checkout; false: it has none. */
  takePersonIndex(index: string): Promise<boolean> {
    return this.takeIndexOf(this.#gitdir, index)
  }

  /** Copies the index in a git dir; false: it has none of a usual size. */
  async takeIndexOf(gitdir: string, index: string): Promise<boolean> {
    const from = join(gitdir, 'index')
    const found = await lstat(from).catch(() => undefined)
    if (!found || found.size > MOST_INDEX || !(await copyPlain(from, this.index(index)))) return false
    // Dated as the original, since git reads files again that are as young as the index.
    const dated = new Date(Math.floor(found.mtimeMs))
    await utimes(this.index(index), dated, dated)
    return true
  }

  /** Reads a commit into an index. */
  async readTree(commit: string, index: string): Promise<void> {
    if (await this.#kept.takeIndex(commit, this.index(index))) return
    await this.git(['read-tree', commit], { index })
    await this.#kept.keepIndex(commit, this.index(index))
  }

  /** The path of a named index. */
  index(name: string): string {
    return join(this.folder, `index-${name}`)
  }

  /** Creates a folder in the scratch repository. */
  async place(name: string): Promise<string> {
    const folder = join(this.folder, name)
    await mkdir(folder, { recursive: true })
    return folder
  }

  /** Whether a commit is an ancestor of another; false if it does not exist. */
  async contains(descendant: string, ancestor: string): Promise<boolean> {
    if (descendant === ancestor) return true
    return (await this.once(['merge-base', '--is-ancestor', ancestor, descendant], { ok: [0, 1, 128] })).code === 0
  }

  /** Whether an object exists. */
  async has(commit: string): Promise<boolean> {
    return (await this.git(['cat-file', '-e', commit], { ok: [0, 1, 128] })).code === 0
  }

  /** The merge base of two commits. */
  async mergeBase(one: string, other: string): Promise<string | undefined> {
    const { text } = await this.once(['merge-base', one, other], { ok: [0, 1] })
    return text.trim() || undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}

/** The id of the empty tree, in the hash algorithm of `like`. */
export const emptyTree = (like: string): string =>
  like.length === 64
    ? '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321'
    : '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
