import { statSync } from 'node:fs'
import { join } from 'node:path'
import { refuse, ignored } from '../../../sdk/index.js'
import { isLeftOut, refuseLeftOut, type RepoGit } from '../repositories/repo-git.js'
import { isRefName } from '../repositories/names.js'
import { entryIn, listedEntry, type TreeEntryAt } from './tree-entries.js'
import { BatchReader, type FoundObject, type GitObject } from './batch-reader.js'

interface Resident {
  readonly reader: Promise<BatchReader>
  usedAt: number
  over: boolean
}

const MOST_READERS = 8
const IDLE_MS = 60_000
const PATIENCE_MS = 30_000
const MOST_COMMIT = 4 * 1024 * 1024
/** Of a larger folder git is asked for the entry. */
const MOST_TREE = 16 * 1024 * 1024

/** Reads objects through one resident git per repository: at most 8, each ended after 60 s without a request. */
export class Objects {
  readonly #readers = new Map<string, Resident>()
  readonly #timer: NodeJS.Timeout

  constructor(signal: AbortSignal) {
    this.#timer = setInterval(() => this.#endIdle(), IDLE_MS / 2)
    this.#timer.unref()
    signal.addEventListener('abort', () => this.close(), { once: true })
  }

  /** An object by any name git knows, with its content up to `most` bytes. */
  async read(git: RepoGit, name: string, most: number): Promise<FoundObject> {
    const reader = await this.#reader(git)
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      late.reject(new Error(`git cat-file did not answer within ${PATIENCE_MS / 1000} s`))
      void reader.end()
    }, PATIENCE_MS)
    try {
      return await Promise.race([reader.read(name, most), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  /** The content of an entry up to `most` bytes; refuses one that is not in the repository. */
  async content(git: RepoGit, { id }: Pick<TreeEntryAt, 'id'>, most: number): Promise<GitObject> {
    const found = await this.read(git, id, most).catch((error: unknown) => {
      if (isLeftOut(error)) return 'missing' as const
      throw error
    })
    return typeof found === 'string' ? refuseLeftOut(git.place.repo) : found
  }

  /** The full id of a commit; refuses an unknown or ambiguous name. */
  async commit(git: RepoGit, revision: string): Promise<string> {
    const absent = (name = revision.slice(0, 200)): never =>
      refuse('not-found', `${git.place.repo} has no commit ${name}`)
    if (!isRefName(revision)) return absent(JSON.stringify(revision.slice(0, 200)))
    const found = await this.read(git, `${revision}^{commit}`, MOST_COMMIT)
    if (found === 'ambiguous')
      return refuse('unprocessable', `${revision} names more than one object: write more of the id`)
    return found === 'missing' || found.type !== 'commit' ? absent() : found.id
  }

  /** HEAD's commit; undefined before the first one. */
  async head(git: RepoGit): Promise<string | undefined> {
    const found = await this.read(git, 'HEAD^{commit}', MOST_COMMIT)
    return typeof found === 'string' ? undefined : found.id
  }

  /**
   * The entry at a path of a commit or a tree; undefined: none.
   *
   * Goes from tree to tree by their ids, because git would take some paths behind a colon for other names.
   */
  async entry(git: RepoGit, tree: string, path: string): Promise<TreeEntryAt | undefined> {
    let found: TreeEntryAt | undefined
    for (const segment of path.split('/')) {
      if (found && found.type !== 'tree') return undefined
      const folder = await this.content(git, { id: found?.id ?? `${tree}^{tree}` }, MOST_TREE)
      if (!folder.bytes) return listedEntry(git, tree, path)
      found = entryIn(folder.bytes, segment, folder.id.length / 2)
      if (!found) return undefined
    }
    return found
  }

  close(): void {
    clearInterval(this.#timer)
    for (const [key] of this.#readers) this.#end(key)
  }

  /** Synchronous between looking up a reader and storing it, because calls are concurrent. */
  #reader(git: RepoGit): Promise<BatchReader> {
    const { gitdir, common } = git.place
    const { ino } = statSync(join(common, 'objects'))
    const key = `${gitdir} ${ino}`
    const known = this.#readers.get(key)
    const resident = known && !known.over ? known : this.#open(git)
    resident.usedAt = performance.now()
    this.#readers.delete(key)
    this.#readers.set(key, resident)
    while (this.#readers.size > MOST_READERS) this.#end(this.#readers.keys().next().value!)
    return resident.reader
  }

  /** Its working directory is the root: in the checkout it would look like a program that changes it. */
  #open(git: RepoGit): Resident {
    const resident: Resident = { reader: BatchReader.open('/', git.env), usedAt: 0, over: false }
    const over = () => void (resident.over = true)
    resident.reader.then(({ ended }) => ended.then(over), over)
    return resident
  }

  #endIdle(): void {
    for (const [key, { usedAt }] of this.#readers) if (performance.now() - usedAt > IDLE_MS) this.#end(key)
  }

  #end(key: string): void {
    const resident = this.#readers.get(key)
    this.#readers.delete(key)
    void resident?.reader.then(reader => reader.end()).catch(ignored('it may have ended already'))
  }
}
