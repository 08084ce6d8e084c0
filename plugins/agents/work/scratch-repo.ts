import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { git, type GitAnswer } from '../../../sdk/node/programs/git.js'
import type { GitFolders } from './git-folders.js'
import { linkObjects } from './own-objects.js'

/** Options of one command in the scratch repository. */
export interface ScratchRepoOptions {
  /** The name of the index to use. */
  readonly index?: string
  /** The working tree; default: an empty folder. */
  readonly tree?: string
  readonly input?: string | Uint8Array
  readonly ok?: readonly number[]
  readonly settings?: readonly string[]
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

const quoted = (path: string): string => `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`

/**
 * A git dir of the daemon that borrows a repository's objects, to compare and create commits, trees and patches.
 *
 * Never writes to the repository and ignores its settings, hooks, filters and worktree attributes: git reads only what
 * the daemon put here, so it cannot be made to run a program.
 */
export class ScratchRepo {
  readonly folder: string
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
    signal?: AbortSignal,
  ) {
    this.folder = folder
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
    copy?: string,
    signal?: AbortSignal,
  ): Promise<ScratchRepo> {
    await mkdir(parent, { recursive: true, mode: 0o700 })
    const folder = await mkdtemp(join(parent, 'bench-'))
    const own = join(folder, 'git')
    const wide = commit.length === 64
    for (const part of [join(own, 'objects'), join(own, 'refs'), join(folder, 'empty')])
      await mkdir(part, { recursive: true })
    await writeFile(join(own, 'HEAD'), 'ref: refs/heads/bench\n')
    await writeFile(
      join(own, 'config'),
      [
        '[core]',
        `repositoryformatversion = ${wide ? 1 : 0}`,
        'bare = false',
        'symlinks = true',
        'fileMode = true',
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
      signal,
    )
  }

  /** Runs one git command in the scratch repository. */
  async git(args: readonly string[], options: ScratchRepoOptions = {}): Promise<GitAnswer> {
    const tree = options.tree ?? this.#empty
    return git(tree, [...(options.settings ?? []).flatMap(setting => ['-c', setting]), ...args], {
      env: { ...this.#env, GIT_WORK_TREE: tree, ...(options.index && { GIT_INDEX_FILE: this.index(options.index) }) },
      maxBytes: MAX_BYTES,
      ...(options.input !== undefined && { input: options.input }),
      ...(options.ok && { ok: options.ok }),
      ...(this.#signal && { signal: this.#signal }),
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
