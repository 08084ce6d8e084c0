import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { git, type GitAnswer } from '../../../sdk/node/programs/git.js'
import type { GitFolders } from './git-folders.js'
import { linkObjects } from './own-objects.js'

/** How one command in the scratch repository runs. */
export interface ScratchRepoOptions {
  /** The index it works on, by name. */
  readonly index?: string
  /** The folder it takes for the working tree; an empty one when left out. */
  readonly tree?: string
  readonly input?: string | Uint8Array
  readonly ok?: readonly number[]
  readonly settings?: readonly string[]
}

/** What scratch repositories share: answers of git and indexes of commits, neither of which changes. */
export interface ScratchCache {
  /** What git said of this before. */
  answer(question: string): GitAnswer | undefined
  /** Keeps what git said. */
  keep(question: string, answer: GitAnswer): void
  /** Lays the index of a commit at a path, if one is kept. */
  takeIndex(commit: string, path: string): Promise<boolean>
  /** Keeps the index of a commit. */
  keepIndex(commit: string, path: string): Promise<void>
}

const MAX_BYTES = 512 * 1024 * 1024

const quoted = (path: string): string => `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`

/**
 * A git folder of the daemon's own that borrows a repository's objects: commits, trees and patches are compared and
 * made there.
 *
 * Nothing is written in the repository, and none of its settings, hooks, filters or attributes of its working tree
 * count: git finds only what the daemon put here, so there is no program it could be made to run.
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
   * Lays a scratch repository beside others in a folder of the daemon's.
   *
   * @param commit Tells the repository's kind of hash.
   * @param repository Tells the repository, as it is now, from any other.
   * @param copy The git dir of a private copy whose own objects are to be there too.
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
        // Names are judged before they come here; what only another system could misread is an ordinary name.
        'protectHFS = false',
        'protectNTFS = false',
        ...(wide ? ['[extensions]', 'objectFormat = sha256'] : []),
        '',
      ].join('\n'),
    )
    const borrowed = [join(folders.common, 'objects')]
    const objects = join(folder, 'objects')
    // What a turn wrote may bear the name of an object it is not: what git says of that is true of this copy alone.
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

  /**
   * Runs a command about commits and trees alone once: these never change, and so neither does what git says of them.
   */
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

  /** Makes an index hold what a commit holds. */
  async readTree(commit: string, index: string): Promise<void> {
    if (await this.#kept.takeIndex(commit, this.index(index))) return
    await this.git(['read-tree', commit], { index })
    await this.#kept.keepIndex(commit, this.index(index))
  }

  /** The file of an index by its name. */
  index(name: string): string {
    return join(this.folder, `index-${name}`)
  }

  /** A folder of its own in the scratch repository. */
  async place(name: string): Promise<string> {
    const folder = join(this.folder, name)
    await mkdir(folder, { recursive: true })
    return folder
  }

  /** Whether a commit is contained in another one's history; one that is gone is in none. */
  async contains(descendant: string, ancestor: string): Promise<boolean> {
    if (descendant === ancestor) return true
    return (await this.once(['merge-base', '--is-ancestor', ancestor, descendant], { ok: [0, 1, 128] })).code === 0
  }

  /** Whether an object is there to be read. */
  async has(commit: string): Promise<boolean> {
    return (await this.git(['cat-file', '-e', commit], { ok: [0, 1, 128] })).code === 0
  }

  /** The newest commit two histories share. */
  async mergeBase(one: string, other: string): Promise<string | undefined> {
    const { text } = await this.once(['merge-base', one, other], { ok: [0, 1] })
    return text.trim() || undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}

/** The id of the tree that holds nothing, in a repository whose ids are as long as this one. */
export const emptyTree = (like: string): string =>
  like.length === 64
    ? '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321'
    : '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
