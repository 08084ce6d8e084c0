import { createHash, randomUUID } from 'node:crypto'
import { lstat, mkdir, open, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { Refusal, refuse } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { flushFolder, flushFolders, flushTree } from '../../sdk/node/files/files.js'
import { LOCAL_FOLDER, openLocal } from '../../sdk/node/files/local-folder.js'
import {
  openOwnFolder,
  openParent,
  shownPath,
  type OpenedParent,
  type PathTree,
} from '../../sdk/node/files/open-path.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import type { RevisedMasker } from '../../sdk/node/access/value-masker.js'
import { openReal } from '../../sdk/node/files/real-path.js'
import type { OutboxBook } from './outbox-book.js'
import { diskIdentityOf, OUTBOX } from './public-folder.js'
import { stageCopy, type StagedCopy } from './staging.js'
import { entryBytes, type StoredEntry, type StoredFile } from './stored-entry.js'

const STAGED = 'outbox'
const NEW = 'new'
const OLD = 'old'
/** The error codes of a path where no file is by now. */
const NO_FILE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'EISDIR'])

/** What is to be published. */
export interface Publication {
  readonly tree: PathTree
  readonly path: string
  readonly source?: string
  readonly as: string
  readonly expiresAt?: number
  readonly by: string
  /** The digest of the files that somebody looked at. */
  readonly expect?: string
}

/** A copy that is to be published. */
interface Staged {
  readonly copy: StagedCopy
  /** Of the stored values that it was searched for. */
  readonly revision: number
  /** Its folder, and the name of that. */
  readonly stage: string
  readonly staged: string
}

/** What names the files of a copy byte for byte, whatever they are published as. */
export const publicationDigestOf = ({ files }: Pick<StagedCopy, 'files'>): string => {
  const of = files.map(({ path, size, sha256 }) => [path.split('/').slice(1), size, sha256])
  return createHash('sha256').update(JSON.stringify(of)).digest('hex')
}

/** The published files: every change of `public/` and of what is stored about it. */
export class Outbox {
  readonly book: OutboxBook
  readonly tree: PathTree
  readonly #masker: () => Promise<RevisedMasker>
  readonly #mutex = new KeyedMutex()
  /** Names whose files are changing places. */
  readonly #swaps = new Map<string, Promise<void>>()
  readonly #withdrawn = new WeakSet<StoredFile>()

  constructor(workspace: string, book: OutboxBook, masker: () => Promise<RevisedMasker>) {
    this.book = book
    this.tree = { root: workspace, reach: undefined, readsGit: false }
    this.#masker = masker
  }

  /** Completes what an earlier daemon began; nothing staged stays. */
  async recover(): Promise<void> {
    for (const { name, stored } of await this.book.load()) {
      const { current, next, removing } = stored
      if (removing !== undefined) {
        await this.#remove(removing)
        await this.book.save(name, current ? { current } : {})
      }
      if (next) await this.#swap(next.entry, next.staged)
    }
    if (!(await isThere(join(this.tree.root, ...LOCAL_FOLDER, STAGED)))) return
    await using local = await openLocal(this.tree.root, STAGED)
    for (const name of await readdir(local.at)) await rm(join(local.at, name), { recursive: true, force: true })
  }

  /** Publishes a copy in place of what has its name. */
  publish(
    publication: Publication,
    signal: AbortSignal,
  ): Promise<{ entry: StoredEntry; copy: StagedCopy; revision: number }> {
    const { source, as: name, expiresAt, by } = publication
    return this.#staging(publication, signal, async ({ copy, revision, stage, staged }) => {
      await flushTree(stage)
      failpoint('outbox.staged')
      const entry: StoredEntry = {
        ...{ name, isFolder: copy.isFolder, publishedBy: by, publishedAt: Date.now(), files: copy.files },
        ...(source !== undefined && { source }),
        ...(expiresAt !== undefined && { expiresAt }),
      }
      await this.#mutex.with(OUTBOX, async () => {
        const quota = this.book.quota(name)
        if (copy.files.length > quota.files || entryBytes(copy) > quota.bytes)
          refuse('too-large', 'other files were published meanwhile, and the outbox is full')
        await this.#assertOwn(name)
        const current = this.book.entry(name)
        await this.book.save(name, { ...(current && { current }), next: { entry, staged } })
        failpoint('outbox.noted')
        await this.#swap(entry, staged)
        this.book.forgetOpened(name)
      })
      return { entry, copy, revision }
    })
  }

  /** Reads what would be published, and publishes nothing. */
  check(publication: Publication, signal: AbortSignal): Promise<StagedCopy> {
    return this.#staging(publication, signal, async ({ copy }) => copy)
  }

  /** Copies what is to be published beside the outbox, and does something with the copy while it is there. */
  async #staging<T>(
    { tree, path, as: name, expect }: Publication,
    signal: AbortSignal,
    work: (made: Staged) => Promise<T>,
  ): Promise<T> {
    const staged = randomUUID()
    await this.#assertOwn(name)
    await using local = await openLocal(this.tree.root, STAGED)
    const stage = join(local.at, staged)
    try {
      const { masker, revision } = await this.#masker()
      await mkdir(stage)
      const to = { place: join(stage, NEW), name }
      const copy = await stageCopy({ tree, path }, to, masker, this.book.quota(name), signal)
      assertSeen(path, copy, expect)
      return await work({ copy, revision, stage, staged })
    } finally {
      await rm(stage, { recursive: true, force: true })
    }
  }

  /** Withdraws what was published at or below a path; false: nothing is there. Other files there stay. */
  async withdraw(path: string): Promise<boolean> {
    const [name = ''] = path.split('/')
    return this.#mutex.with(OUTBOX, async () => {
      const entry = this.book.entry(name)
      const isGone = (file: StoredFile) => file.path === path || file.path.startsWith(`${path}/`)
      const gone = entry?.files.filter(isGone) ?? []
      if (!entry || gone.length === 0) {
        await this.#assertNothing(path)
        return false
      }
      const left = entry.files.filter(file => !isGone(file))
      const stays = left.length > 0 ? { current: { ...entry, files: left } } : {}
      const removing = gone.map(file => file.path)
      await this.book.save(name, { ...stays, removing })
      for (const file of gone) this.#withdrawn.add(file)
      failpoint('outbox.withdrawn')
      await this.#remove(removing)
      await this.book.save(name, stays)
      if (left.length === 0) this.book.forgetOpened(name)
      return true
    })
  }

  /** Changes what is stored of an entry, unless it was replaced. */
  async note(entry: StoredEntry, change: () => void): Promise<boolean> {
    return this.#mutex.with(OUTBOX, async () => {
      if (this.book.entry(entry.name) !== entry) return false
      change()
      await this.book.save(entry.name, { current: entry })
      return true
    })
  }

  isWithdrawn(file: StoredFile): boolean {
    return this.#withdrawn.has(file)
  }

  /** The entry of a name, after a change of places that is under way. */
  async settled(name: string): Promise<StoredEntry | undefined> {
    await this.#swaps.get(name)
    return this.book.entry(name)
  }

  /** Whether an entry is still the one of its name. */
  isCurrent(entry: StoredEntry): boolean {
    return !this.#swaps.has(entry.name) && this.book.entry(entry.name) === entry
  }

  /** Puts staged files into the place of a name, from wherever an earlier daemon was killed in it. */
  async #swap(entry: StoredEntry, staged: string): Promise<void> {
    const { name } = entry
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#swaps.set(name, promise)
    try {
      await using outbox = await openOwnFolder(this.tree.root, [OUTBOX])
      await using local = await openLocal(this.tree.root, STAGED)
      const [target, stage] = [join(outbox.at, name), join(local.at, staged)]
      if (await isThere(join(stage, NEW))) {
        if (await isThere(target)) {
          await rm(join(stage, OLD), { recursive: true, force: true })
          await rename(target, join(stage, OLD))
        }
        failpoint('outbox.parted')
        await rename(join(stage, NEW), target)
        await flushFolders(join(this.tree.root, OUTBOX, name))
        failpoint('outbox.placed')
      }
      // A new name is a change of a file's times.
      const [first] = entry.files
      if (!entry.isFolder && first) first.identity = (await this.#identityOf(first)) ?? first.identity
      await this.book.save(name, { current: entry })
    } finally {
      this.#swaps.delete(name)
      resolve()
    }
  }

  async #identityOf({ path }: StoredFile): Promise<string | undefined> {
    const found = await openReal(this.tree, `${OUTBOX}/${path}`)
    if (typeof found === 'string') return undefined
    try {
      await using handle = await open(found.at, 'r')
      return await diskIdentityOf(handle)
    } finally {
      await found.close()
    }
  }

  /** Refuses a name that something has which was not published: it may be a person's. */
  async #assertOwn(name: string): Promise<void> {
    const entry = this.book.entry(name)
    const next = 'choose another name with as, or move it away'
    if (!entry) return this.#assertNothing(name, next)
    const parent = await this.#parentOf(name)
    if (!parent) return
    try {
      const published = new Set(entry.files.map(({ path }) => path))
      for (const path of await filesAt(parent.target, name)) if (!published.has(path)) refuseOther(path, next)
    } finally {
      await parent.close()
    }
  }

  /** Refuses a path where something is that was not published. */
  async #assertNothing(path: string, next = 'delete it as any file of the workspace'): Promise<void> {
    const found = await openReal(this.tree, `${OUTBOX}/${path}`)
    if (found === 'missing') return
    if (found !== 'link') await found.close()
    refuseOther(path, next)
  }

  /** Removes files and the folders that are empty without them. */
  async #remove(paths: readonly string[]): Promise<void> {
    for (const [folder, some] of Map.groupBy(paths, path => dirname(path))) {
      const parent = await this.#parentOf(some[0]!)
      if (!parent) continue
      try {
        // A folder that a person put in the place of a file stays.
        for (const path of some)
          await unlink(join(parent.at, basename(path))).catch((error: unknown) => {
            if (!NO_FILE.has(codeOf(error))) throw error
          })
        await flushFolder(parent.at)
      } finally {
        await parent.close()
      }
      await this.#removeEmpty(folder)
    }
  }

  async #removeEmpty(path: string): Promise<void> {
    const parent = path === '.' ? await this.#parent(OUTBOX) : await this.#parentOf(path)
    if (!parent) return
    const kept = await rmdir(parent.target).catch((error: unknown) => codeOf(error))
    await parent.close()
    if (kept === undefined && path !== '.') await this.#removeEmpty(dirname(path))
  }

  #parentOf(path: string): Promise<OpenedParent | undefined> {
    return this.#parent(`${OUTBOX}/${path}`)
  }

  /** The folder of a path, if no link is on the way. */
  async #parent(path: string): Promise<OpenedParent | undefined> {
    const parent = await openParent(this.tree, path, { existing: true }).catch((error: unknown) => {
      if (['not-found', 'invalid'].includes(Refusal.from(error).reason)) return undefined
      throw error
    })
    if (!parent || parent.path === dirname(path)) return parent
    await parent.close()
    return undefined
  }
}

/** Refuses files that are not those that somebody looked at. */
const assertSeen = (path: string, copy: StagedCopy, expect: string | undefined): void => {
  const digest = expect === undefined ? undefined : publicationDigestOf(copy)
  if (digest === expect) return
  refuse('conflict', `${shownPath(path)} is not what was seen: check it again, then publish it`, {
    fields: { digest, files: copy.files.length, bytes: entryBytes(copy) },
  })
}

const refuseOther = (path: string, next: string): never =>
  refuse('conflict', `${shownPath(`${OUTBOX}/${path}`)} was not published: ${next}`)

/** Everything at or below a place but folders, by its path from the outbox. */
const filesAt = async (place: string, path: string): Promise<string[]> => {
  if (!(await lstat(place).catch(() => undefined))?.isDirectory()) return []
  const all = await readdir(place, { recursive: true, withFileTypes: true })
  return all.flatMap(one => (one.isDirectory() ? [] : [join(path, relative(place, one.parentPath), one.name)]))
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )
