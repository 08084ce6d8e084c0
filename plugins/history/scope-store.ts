import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ChangedSides } from '../../sdk/index.js'
import { readPlain, writeAtomic } from '../../sdk/node/files/files.js'
import { binariesIn, rawRows } from '../../sdk/node/files/side-files.js'
import { git, GitFailure, type GitAnswer, type GitOptions } from '../../sdk/node/programs/git.js'
import { processHolding } from '../../sdk/node/programs/holding.js'
import type { WallSpec } from '../../sdk/node/wall/wall.js'
import { pointedGitdir, restorePointer } from './git-pointer.js'
import { heldOf, MADE_PATTERNS } from './held-files.js'

/** One changed path between two trees. */
export interface TreePath {
  readonly path: string
  readonly status: 'added' | 'modified' | 'deleted' | 'type-changed'
}

/** The current files of a repository, as a tree of its store. */
export interface TreeNow {
  readonly tree: string
  readonly skipped: number
}

/** The facts about the machine for the wall of a restore. */
export type RestoreWall = Pick<WallSpec, 'workspace' | 'data' | 'hide' | 'grants'>

const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
const LETTERS: { readonly [letter: string]: TreePath['status'] } = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  T: 'type-changed',
}
/** Files are stored as on disk, without line end conversion, filters or encodings of the repository. */
const ATTRIBUTES = '* -text -eol -filter -ident -working-tree-encoding\n'
const LASTING = ['-c', 'core.fsync=all', '-c', 'core.fsyncMethod=batch', '-c', 'core.fileMode=true']
const MOST_LIST = 512 * 1024 * 1024
const LONG_MS = 120_000
const GITDIR = 'gitdir'
/** Git's words for a listed file that became a folder, or vanished while it was opened. */
const CHANGED_MEANWHILE = /Unable to process path/
const MOST_TRIES = 5
/** How long a git of a killed daemon may take to end. */
const ENDING_MS = 30_000

/** The store of saved trees of one repository: a bare repository with its own index, outside the workspace. */
export class ScopeStore {
  readonly scope: string
  readonly #dir: string
  readonly #store: string

  /**
   * @param dir The checkout.
   * @param folder The folder of all stores.
   */
  constructor(scope: string, dir: string, folder: string) {
    this.scope = scope
    this.#dir = dir
    this.#store = join(folder, createHash('sha256').update(scope).digest('hex').slice(0, 32))
  }

  /** Creates the store if it is missing, and removes the locks of a git that a kill ended. */
  async open(): Promise<void> {
    if (readPlain(join(this.#store, 'ready')) !== undefined) return dropLocks(this.#store)
    await rm(this.#store, { recursive: true, force: true })
    await mkdir(this.#store, { recursive: true, mode: 0o700 })
    await git(this.#store, ['init', '-q', '--bare', '--object-format=sha1', '--template=', '.'])
    await mkdir(join(this.#store, 'info'), { recursive: true })
    await writeFile(join(this.#store, 'info/attributes'), ATTRIBUTES)
    await writeFile(join(this.#store, 'ready'), `${this.scope}\n`)
  }

  /** The git dir in the data folder that this repository had when it was last saved. */
  get gitdir(): string | undefined {
    return readPlain(join(this.#store, GITDIR))?.trimEnd() || undefined
  }

  /** Notes which git dir in the data folder the repository has. */
  async noteGitdir(data: string): Promise<void> {
    const name = pointedGitdir(this.#dir, data)
    if (name !== undefined && name !== this.gitdir) await writeAtomic(join(this.#store, GITDIR), `${name}\n`)
  }

  /** Gives the checkout its `.git` file back if it is gone; `others` are the checkouts of the other repositories. */
  async restoreGit(data: string, others: readonly string[]): Promise<void> {
    if (this.gitdir !== undefined) await restorePointer(this.#dir, data, this.gitdir, others)
  }

  /** Writes a tree of the current files; `others` are nested repositories, as paths from this one's root. */
  async now(others: readonly string[], signal?: AbortSignal): Promise<TreeNow> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#now(others, signal)
      } catch (error) {
        if (tries === MOST_TRIES || !(error instanceof GitFailure && CHANGED_MEANWHILE.test(error.stderr))) throw error
      }
    }
  }

  async #now(others: readonly string[], signal?: AbortSignal): Promise<TreeNow> {
    await this.#refreshIgnored(others)
    const how = { ...(signal && { signal }), maxBytes: MOST_LIST }
    const listed = await this.#run(['ls-files', '-z', '-m', '-d', '-o', '--exclude-standard'], how)
    const forced = await this.#trackedThoughIgnored(how)
    const names = [...new Set([...split(listed.stdout), ...forced])].filter(path => !path.endsWith('/'))
    const inner = others.map(path => `${Buffer.from(path).toString('latin1')}/`)
    const own = names.filter(path => !inner.some(prefix => path.startsWith(prefix)))
    const { paths, gone, skipped } = await heldOf(this.scope, this.#dir, own)
    if (gone.length > 0) {
      const input = Buffer.from(gone.map(path => `0 ${'0'.repeat(40)}\t${path}\0`).join(''), 'latin1')
      await this.#run(['update-index', '-z', '--index-info'], { ...how, input })
    }
    if (paths.length > 0) {
      const input = Buffer.from(paths.map(path => `${path}\0`).join(''), 'latin1')
      await this.#run([...LASTING, 'update-index', '-z', '--add', '--remove', '--replace', '--stdin'], {
        ...how,
        input,
      })
    }
    const { text } = await this.#run([...LASTING, 'write-tree'], how)
    return { tree: text.trim(), skipped }
  }

  /** Keeps a tree from being removed. */
  async keep(tree: string): Promise<void> {
    await this.#run([...LASTING, 'update-ref', `refs/trees/${tree}`, tree])
  }

  /** Whether a tree has a file or a folder at a path. */
  async holds(tree: string, path: string): Promise<boolean> {
    return (await this.#run(['ls-tree', '-z', '--full-tree', tree, '--', path])).stdout.length > 0
  }

  /** Drops every tree except these, and returns whether any was dropped; `collect` removes the objects. */
  async drop(kept: ReadonlySet<string>): Promise<boolean> {
    const { text } = await this.#run(['for-each-ref', '--format=%(refname)', 'refs/trees'])
    const gone = text.split('\n').filter(ref => ref !== '' && !kept.has(ref.slice('refs/trees/'.length)))
    if (gone.length === 0) return false
    await this.#run(['update-ref', '--stdin'], { input: gone.map(ref => `delete ${ref}\n`).join('') })
    return true
  }

  /** Removes the store with all its trees. */
  async remove(): Promise<void> {
    await rm(this.#store, { recursive: true, force: true })
  }

  /** Removes the objects that neither a tree nor the index needs. */
  async collect(): Promise<void> {
    await this.#run(['gc', '-q', '--prune=now'], { timeoutMs: 10 * LONG_MS })
  }

  /** Both sides of what differs between two trees, and whether it is binary. */
  async compared(from: string | undefined, to: string | undefined): Promise<ChangedSides[]> {
    const { rows, rest } = rawRows(await this.#difference(['--raw', '--numstat', '--no-abbrev'], from, to))
    const binaries = binariesIn(rest)
    return rows.map(({ letter: _letter, ...row }) => ({ ...row, binary: binaries.has(row.path) }))
  }

  /** What differs between two trees; undefined stands for nothing. */
  async changes(from: string | undefined, to: string | undefined): Promise<TreePath[]> {
    const text = await this.#difference(['--name-status'], from, to)
    const fields = text.split('\0')
    const changes: TreePath[] = []
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const status = LETTERS[fields[at]![0] ?? '']
      if (status) changes.push({ path: fields[at + 1]!, status })
    }
    return changes
  }

  /** The content of a path in a tree, up to `most` bytes, and its id. */
  async content(
    tree: string | undefined,
    path: string,
    most: number,
  ): Promise<{ id: string; bytes: Buffer | 'large' } | undefined> {
    if (tree === undefined) return undefined
    const { text } = await this.#run(['ls-tree', '-z', '-l', '--full-tree', tree, '--', path])
    const record = text.split('\0').find(each => each.slice(each.indexOf('\t') + 1) === path)
    const [, type, id = '', size] = record?.slice(0, record.indexOf('\t')).split(/ +/) ?? []
    if (type !== 'blob') return undefined
    if (Number(size) > most) return { id, bytes: 'large' }
    return { id, bytes: (await this.#run(['cat-file', 'blob', id], { maxBytes: most + 1 })).stdout }
  }

  /** A tree with some paths from `to` and all others from `from`. */
  async mixed(from: string, to: string, paths: readonly string[]): Promise<string> {
    const env = { GIT_INDEX_FILE: join(this.#store, 'index-mixed') }
    await rm(env.GIT_INDEX_FILE, { force: true })
    await this.#run(['read-tree', from], { env })
    for (const path of paths) {
      const here = split((await this.#run(['ls-files', '-z', '--', path], { env })).stdout)
      const there = (await this.#run(['ls-tree', '-r', '-z', '--full-tree', to, '--', path])).stdout
      const gone = Buffer.from(here.map(name => `0 ${'0'.repeat(40)}\t${name}\0`).join(''), 'latin1')
      await this.#run(['update-index', '-z', '--index-info'], { env, input: Buffer.concat([gone, there]) })
    }
    return (await this.#run([...LASTING, 'write-tree'], { env })).text.trim()
  }

  /** Writes a tree to disk, behind a wall: writes differing files, and removes those only in the previous tree. */
  async write(tree: string, wall: RestoreWall): Promise<void> {
    await mkdir(this.#dir, { recursive: true })
    const config = join(wall.workspace, '.sandbox/config')
    const place = { ...wall, exposed: [this.#store], writable: [config] }
    await this.#run(['read-tree', '--reset', '-u', tree], { wall: place, timeoutMs: 5 * LONG_MS })
  }

  async #difference(how: readonly string[], from: string | undefined, to: string | undefined): Promise<string> {
    const ends = [from ?? EMPTY_TREE, to ?? EMPTY_TREE]
    const args = ['diff-tree', '-r', '-z', '--no-renames', ...how, ...ends]
    return (await this.#run(args, { maxBytes: MOST_LIST })).text
  }

  /** What the repository has though it ignores it. */
  async #trackedThoughIgnored(how: GitOptions): Promise<string[]> {
    const args = ['ls-files', '-z', '-c', '-i', '--exclude-standard']
    const { code, stdout } = await git(this.#dir, args, { ...how, ok: [0, 128] }).catch(() => NOTHING)
    return code === 0 ? split(stdout) : []
  }

  async #refreshIgnored(others: readonly string[]): Promise<void> {
    const own = readPlain(join(this.#dir, '.git/info/exclude')) ?? ''
    const state = this.scope === 'root' ? ['/.sandbox/*', '!/.sandbox/config/', '/refs/'] : []
    const inner = others.map(path => `/${path.replace(/[\\*?[]/g, '\\$&')}/`)
    await writeFile(join(this.#store, 'info/exclude'), [own, ...MADE_PATTERNS, ...state, ...inner, ''].join('\n'))
  }

  #run(args: readonly string[], options: GitOptions = {}): Promise<GitAnswer> {
    const env = {
      GIT_DIR: this.#store,
      GIT_WORK_TREE: this.#dir,
      GIT_INDEX_FILE: join(this.#store, 'index'),
      GIT_LITERAL_PATHSPECS: '1',
      ...options.env,
    }
    // A removed repository still has its points.
    const cwd = existsSync(this.#dir) ? this.#dir : this.#store
    return git(cwd, ['-c', 'core.bare=false', ...args], { timeoutMs: LONG_MS, ...options, env })
  }
}

/** Removes the locks in a store, once no process holds them. */
const dropLocks = async (store: string): Promise<void> => {
  const until = performance.now() + ENDING_MS
  for (const folder of [store, join(store, 'refs/trees')])
    for (const name of await readdir(folder).catch(() => [])) {
      if (!name.endsWith('.lock')) continue
      const lock = join(folder, name)
      while (processHolding(lock) && performance.now() < until) await delay(100)
      await rm(lock, { force: true })
    }
}

const NOTHING = { code: 1, stdout: Buffer.alloc(0) }

const split = (bytes: Buffer): string[] => bytes.toString('latin1').split('\0').filter(Boolean)
