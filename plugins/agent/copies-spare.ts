import { watch, type FSWatcher } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { failpoint } from '../../sdk/node/failpoint.js'
import { GitFailure } from '../../sdk/node/git.js'
import type { Locks } from '../../sdk/node/lock.js'
import { wasEarlier } from './copies-earlier.js'
import type { Look } from './copies-look.js'
import { attachTree, detachTree, whole, type Repository } from './copies-repos.js'
import type { Made, Shelf } from './copies-shelf.js'
import type { Trash } from './copies-trash.js'
import { moveTree } from './copies-tree.js'

/** What the spare is made with. */
export interface SpareParts {
  readonly shelf: Shelf
  readonly look: Look
  readonly trash: Trash
  readonly locks: Locks
  /** Hears of a spare that could not follow the main line. */
  readonly failed: (error: unknown) => void
}

/** Not an id a conversation can have. */
const SPARE = '.spare'
/** A commit, a pull or a rebase touches a git dir many times: the spare follows once it is done. */
const QUIET_MS = 250

const same = (made: Made, sources: readonly Repository[]): boolean =>
  made.repos.length === sources.length
  && sources.every(({ repo, common }, at) => repo === made.repos[at]?.repo && common === made.repos[at]?.common)

/** A copy kept ready that the next conversation's is made of; it follows the main line by itself. */
export class Spare {
  readonly #parts: SpareParts
  readonly #watchers = new Map<string, FSWatcher>()
  #making = false
  #timer: NodeJS.Timeout | undefined
  #following: Promise<void> | undefined
  #closed = false

  constructor(parts: SpareParts) {
    this.#parts = parts
  }

  /** Makes the spare, or moves it to where the main line is now. */
  async warm(): Promise<void> {
    const { locks, look } = this.#parts
    await locks.with(SPARE, async () => {
      const { repositories } = await look.now()
      if (!this.#closed) this.#watch(repositories)
      if (await this.#follow(repositories)) return
      await this.#make(repositories)
      for (const repository of repositories) await look.study(repository)
    })
  }

  /** Turns the spare into a conversation's copy, when there is one of the same repositories that git can move. */
  async adopt(id: string, sources: readonly Repository[]): Promise<Made | undefined> {
    const { locks, shelf, failed } = this.#parts
    if (this.#making) return undefined
    return locks.with(SPARE, async () => {
      const made = await this.#whole()
      if (!made || !same(made, sources)) return undefined
      await shelf.unfinish(SPARE)
      failpoint('agent.spare.claimed')
      await rename(shelf.place(SPARE), shelf.place(id))
      failpoint('agent.spare.moved')
      await Promise.all(sources.map(async (source, at) => {
        await attachTree(source, made.repos[at]!.gitdir, `agent/${id}`)
        failpoint('agent.spare.attached')
      }))
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

  /** Follows the main line no longer; resolves when nothing is being moved. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
    await this.#following
  }

  async #whole(): Promise<Made | undefined> {
    const { shelf } = this.#parts
    const made = await shelf.made(SPARE)
    return made && !wasEarlier(made) && (await whole(shelf.place(SPARE), made.repos)) ? made : undefined
  }

  async #discard(id: string, made: Made | undefined): Promise<void> {
    const { shelf, trash } = this.#parts
    await trash.throwAway(shelf.place(id))
    await trash.dropGitdirs(made?.repos ?? [])
  }

  async #make(sources: readonly Repository[]): Promise<void> {
    const { shelf } = this.#parts
    this.#making = true
    try {
      const before = await shelf.made(SPARE)
      await shelf.unfinish(SPARE)
      await this.#discard(SPARE, before)
      await mkdir(dirname(shelf.place(SPARE)), { recursive: true, mode: 0o700 })
      const made: Made = { repos: [], shown: [] }
      for (const source of sources) await shelf.add(made, SPARE, source)
      if (sources.length > 0) await shelf.finish(SPARE, made)
    } finally {
      this.#making = false
    }
  }

  /** Moves a spare that is ready to these commits; false: there is none of these repositories. */
  async #follow(sources: readonly Repository[]): Promise<boolean> {
    const { shelf } = this.#parts
    const made = await this.#whole()
    if (!made || !same(made, sources)) return false
    const behind = sources.filter(({ head }, at) => head !== made.repos[at]!.head)
    if (behind.length === 0) return true
    await shelf.unfinish(SPARE)
    for (const source of behind) await detachTree(made.repos.find(({ repo }) => repo === source.repo)!.gitdir, source.head)
    await this.#move(SPARE, made, sources)
    await shelf.finish(SPARE, made)
    return true
  }

  async #move(id: string, made: Made, sources: readonly Repository[]): Promise<void> {
    const { shelf } = this.#parts
    for (const [at, { repo, head }] of sources.entries()) {
      const known = made.repos[at]!
      if (known.head !== head) await moveTree(shelf.tree(id, made, repo), known.head, head)
      known.head = head
    }
  }

  /** Every commit of the main line touches its git dir. A repository that cannot be watched is followed when it is used. */
  #watch(sources: readonly Repository[]): void {
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
        // What was committed before it was watched is followed too.
        this.#touched()
      } catch {
        continue
      }
    }
  }

  #touched(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const { failed, locks, look } = this.#parts
      this.#following = locks.with(SPARE, async () => void (this.#closed || (await this.#follow((await look.now()).repositories)))).catch(failed)
    }, QUIET_MS).unref()
  }
}
