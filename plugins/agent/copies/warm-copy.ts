import { watch, type FSWatcher } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { GitFailure } from '../../../sdk/node/programs/git.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { isEarlierCopy } from './earlier.js'
import type { RepositoryScan } from '../../../sdk/node/repositories/repository-scan.js'
import { type MainRepository } from '../../../sdk/node/repositories/main-repository.js'
import { treeFormOf, formStamp } from './form.js'
import { attachTree, detachTree, isWhole } from './repositories.js'
import type { CopyRecord, CopyStore } from './copy-store.js'
import type { Trash } from './trash.js'
import { dateIndex, moveTree } from './tree.js'

/** The dependencies of the warm copy. */
export interface WarmCopyDeps {
  readonly store: CopyStore
  readonly scan: RepositoryScan
  readonly trash: Trash
  readonly locks: KeyedMutex
  /** Called with the error when updating the warm copy to the main line failed. */
  readonly failed: (error: unknown) => void
}

/** An id that no conversation can have. */
const WARM = '.spare'
/** A commit, a pull or a rebase touches a git dir many times: the warm copy is updated when it is quiet. */
const QUIET_MS = 250

/** Whether a copy has these repositories, in the form of the person's checkouts. */
const same = async (made: CopyRecord, sources: readonly MainRepository[]): Promise<boolean> => {
  if (made.repos.length !== sources.length) return false
  for (const [at, source] of sources.entries()) {
    const { repo, common, form } = made.repos[at]!
    if (repo !== source.repo || common !== source.common || form !== formStamp(await treeFormOf(source))) return false
  }
  return true
}

/** A copy prepared for the next conversation, which is kept up to date with the main line. */
export class WarmCopy {
  readonly #deps: WarmCopyDeps
  readonly #watchers = new Map<string, FSWatcher>()
  #making = false
  #timer: NodeJS.Timeout | undefined
  #following: Promise<void> | undefined
  #closed = false

  constructor(deps: WarmCopyDeps) {
    this.#deps = deps
  }

  /** Creates the warm copy, or updates it to the current main line. */
  async warm(): Promise<void> {
    const { locks, scan } = this.#deps
    await locks.with(WARM, async () => {
      const { repositories } = await scan.now()
      if (!this.#closed) this.#watch(repositories)
      if (await this.#follow(repositories)) return
      await this.#make(repositories)
      for (const repository of repositories) await scan.study(repository)
    })
  }

  /**
   * Turns the warm copy into a conversation's copy on this branch, if it has the same repositories and git can update
   * it.
   */
  async adopt(id: string, branch: string, sources: readonly MainRepository[]): Promise<CopyRecord | undefined> {
    const { locks, store, failed } = this.#deps
    if (this.#making) return undefined
    return locks.with(WARM, async () => {
      const made = await this.#whole()
      if (!made || !(await same(made, sources))) return undefined
      await store.unfinish(WARM)
      failpoint('agent.warm.claimed')
      await rename(store.place(WARM), store.place(id))
      failpoint('agent.warm.moved')
      await Promise.all(
        sources.map(async (source, at) => {
          await attachTree(source, made.repos[at]!.gitdir, branch)
          failpoint('agent.warm.attached')
        }),
      )
      made.branch = branch
      try {
        await this.#move(id, made, sources)
        return made
      } catch (error) {
        if (!(error instanceof GitFailure)) throw error
        failed(error)
        await this.#discard(id, made)
        return undefined
      }
    })
  }

  /** Stops updating the warm copy; resolves when no update is running. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
    await this.#following
  }

  async #whole(): Promise<CopyRecord | undefined> {
    const { store } = this.#deps
    const made = await store.made(WARM)
    return made && !isEarlierCopy(made) && (await isWhole(store.place(WARM), made.repos)) ? made : undefined
  }

  async #discard(id: string, made: CopyRecord | undefined): Promise<void> {
    const { store, trash } = this.#deps
    await trash.throwAway(store.place(id))
    await trash.dropGitdirs(made?.repos ?? [])
  }

  async #make(sources: readonly MainRepository[]): Promise<void> {
    const { store } = this.#deps
    this.#making = true
    try {
      const before = await store.made(WARM)
      await store.unfinish(WARM)
      await this.#discard(WARM, before)
      await mkdir(dirname(store.place(WARM)), { recursive: true, mode: 0o700 })
      const made: CopyRecord = { repos: [], shown: [] }
      try {
        for (const source of sources) await store.add(made, WARM, source)
        if (sources.length > 0) await store.finish(WARM, made)
      } catch (error) {
        // The record of its git dirs is not written yet: after this nothing would know them.
        await this.#discard(WARM, made)
        throw error
      }
    } finally {
      this.#making = false
    }
  }

  /** Updates the warm copy to these commits; false: there is none with these repositories. */
  async #follow(sources: readonly MainRepository[]): Promise<boolean> {
    const { store } = this.#deps
    const made = await this.#whole()
    if (!made || !(await same(made, sources))) return false
    const behind = sources.filter(({ head }, at) => head !== made.repos[at]!.head)
    if (behind.length === 0) return true
    await store.unfinish(WARM)
    for (const source of behind)
      await detachTree(made.repos.find(({ repo }) => repo === source.repo)!.gitdir, source.head)
    await this.#move(WARM, made, sources)
    for (const { gitdir } of made.repos) await dateIndex(gitdir)
    await store.finish(WARM, made)
    return true
  }

  async #move(id: string, made: CopyRecord, sources: readonly MainRepository[]): Promise<void> {
    const { store } = this.#deps
    for (const [at, { repo, head }] of sources.entries()) {
      const known = made.repos[at]!
      if (known.head !== head) await moveTree(store.tree(id, made, repo), known.head, head)
      known.head = head
    }
  }

  /**
   * Every commit of the main line touches its git dir. If a repository cannot be watched, the copy is updated when it
   * is used.
   */
  #watch(sources: readonly MainRepository[]): void {
    for (const [gitdir, watcher] of this.#watchers) {
      if (sources.some(source => source.gitdir === gitdir)) continue
      watcher.close()
      this.#watchers.delete(gitdir)
    }
    for (const { gitdir } of sources) {
      if (this.#watchers.has(gitdir)) continue
      try {
        const watcher = watch(gitdir, { persistent: false }, () => this.#touched())
        watcher.on('error', () => watcher.close())
        this.#watchers.set(gitdir, watcher)
        // Commits from before the watch began count too.
        this.#touched()
      } catch {
        continue
      }
    }
  }

  #touched(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const { failed, locks, scan } = this.#deps
      this.#following = locks
        .with(WARM, async () => void (this.#closed || (await this.#follow((await scan.now()).repositories))))
        .catch(failed)
    }, QUIET_MS).unref()
  }
}
