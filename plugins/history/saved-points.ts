import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { isWithin, pathOfRepo, refuse, type Host } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { isFull } from '../../sdk/node/files/disk.js'
import { readPlain } from '../../sdk/node/files/files.js'
import { folderExceeds } from '../../sdk/node/files/folder-exceeds.js'
import { foldersWithGit } from '../../sdk/node/repositories/folders-with-git.js'
import type { PointTrigger } from './contract.js'
import { PointList, type StoredPoint } from './points.js'
import { ScopeStore, type TreePath } from './scope-store.js'

/** The reason for saving a point. */
export interface PointOrder {
  readonly trigger: PointTrigger
  readonly label?: string | undefined
  readonly by?: string | undefined
  readonly conversationId?: string | undefined
}

/** The trees of all repositories as they are on disk. */
export interface TreesNow {
  readonly trees: { [scope: string]: string }
  readonly skipped: number
  readonly partial: string[]
}

const MOST_SCOPES = 1000
const MOST_TOUCHED = 500
const MOST_LABEL = 160
const ALONE = 'store'
/** How much of the disk saved points may take. */
const MOST_BYTES = 10 * 1024 ** 3

/** The saved points of a workspace, and the stores of their trees. */
export class SavedPoints {
  readonly points: PointList
  readonly #host: Pick<Host, 'place' | 'journal' | 'log' | 'signal' | 'call'>
  readonly #mutex = new KeyedMutex()
  readonly #stores = new Map<string, Promise<ScopeStore>>()
  readonly #mostBytes: number

  constructor(host: Pick<Host, 'place' | 'journal' | 'log' | 'signal' | 'call'>, mostBytes = MOST_BYTES) {
    this.#host = host
    this.#mostBytes = mostBytes
    this.points = new PointList(host.journal)
  }

  /** Runs a step while nothing else uses the stores. */
  alone<T>(step: () => Promise<T>): Promise<T> {
    return this.#mutex.with(ALONE, step, this.#host.signal)
  }

  /** The store of a repository, made when needed. */
  store(scope: string): Promise<ScopeStore> {
    const known = this.#stores.get(scope)
    if (known) return known
    const { workspace } = this.#host.place
    const dir = scope === 'root' ? workspace : join(workspace, scope)
    const store = new ScopeStore(scope, dir, this.#folder)
    const opened = store.open().then(() => store)
    this.#stores.set(scope, opened)
    opened.catch(() => this.#stores.delete(scope))
    return opened
  }

  /** The existing repositories; the workspace itself always counts as one. */
  async scopes(): Promise<string[]> {
    const found = ['root']
    for await (const path of foldersWithGit(this.#host.place.workspace))
      if (path !== '' && found.length < MOST_SCOPES) found.push(path)
    return found
  }

  /** Reads every repository from disk into its store; only while `alone`. */
  async now(): Promise<TreesNow> {
    const scopes = await this.scopes()
    const trees: { [scope: string]: string } = {}
    const partial: string[] = []
    let skipped = 0
    for (const scope of scopes) {
      const inner = scopes.filter(each => each !== 'root' && each !== scope && isWithin(pathOfRepo(scope), each))
      try {
        const store = await this.store(scope)
        const relative = inner.map(each => posix.relative(pathOfRepo(scope), each))
        const found = await store.now(relative, this.#host.signal)
        trees[scope] = found.tree
        await store.noteGitdir(this.#host.place.data)
        skipped += found.skipped
      } catch (error) {
        if (isFull(error)) throw error
        this.#host.signal.throwIfAborted()
        this.#host.log.warn('a repository could not be saved', { scope, error: String(error) })
        partial.push(scope)
        const before = this.points.last?.trees[scope]
        if (before !== undefined) trees[scope] = before
      }
    }
    return { trees, skipped, partial }
  }

  /** Saves the changes since the last point; returns the last one if nothing changed. */
  save(order: PointOrder): Promise<{ point: StoredPoint | undefined; saved: boolean; partial: string[] }> {
    return this.alone(() => this.saveAlone(order))
  }

  /** Like `save`, for callers that already hold the stores. */
  async saveAlone(order: PointOrder): Promise<{ point: StoredPoint | undefined; saved: boolean; partial: string[] }> {
    const { last } = this.points
    const { trees, skipped, partial } = await this.now()
    const changes = await this.#changed(last?.trees ?? {}, trees)
    if (changes.size === 0 && last) return { point: last, saved: false, partial }
    for (const [scope, tree] of Object.entries(trees)) await (await this.store(scope)).keep(tree)
    failpoint('history.trees.kept')
    const all = [...changes].flatMap(([scope, paths]) => paths.map(path => posix.join(pathOfRepo(scope), path)))
    const label = order.label?.slice(0, MOST_LABEL)
    const point: StoredPoint = {
      id: randomUUID(),
      at: Math.max(Date.now(), (last?.at ?? 0) + 1),
      trigger: order.trigger,
      ...(label && { label }),
      ...(order.by !== undefined && { by: order.by }),
      ...(order.conversationId !== undefined && { conversationId: order.conversationId }),
      scopes: [...changes.keys()].sort(),
      files: all.length,
      ...(skipped > 0 && { skipped }),
      ...(partial.length > 0 && { partial }),
      trees,
      touched: all.slice(0, MOST_TOUCHED),
      ...(all.length > MOST_TOUCHED && { more: true as const }),
    }
    await this.points.add(point)
    await this.#host.call('kernel.events.publish', { domain: 'history', key: point.id })
    return { point, saved: true, partial }
  }

  /** The differences between two points, by repository. */
  async between(
    from: { [scope: string]: string },
    to: { [scope: string]: string },
  ): Promise<{ scope: string; path: TreePath }[]> {
    const scopes = [...new Set([...Object.keys(from), ...Object.keys(to)])].sort()
    const found = await Promise.all(
      scopes.map(async scope => {
        if (from[scope] === to[scope]) return []
        const changes = await (await this.store(scope)).changes(from[scope], to[scope])
        return changes.map(path => ({ scope, path }))
      }),
    )
    return found.flat()
  }

  /** Drops old points, then more while the stores take too much of the disk, and the trees that no point needs. */
  async prune(): Promise<void> {
    const dropped = await this.alone(async () => {
      const old = await this.points.dropOld(Date.now())
      // Trees of points that were never listed, or dropped by a daemon that ended, take room too.
      await this.#clear(false)
      return (await this.#makeRoom()) || old
    })
    if (dropped) await this.#host.call('kernel.events.publish', { domain: 'history' })
  }

  /** Drops points until the stores keep to their limit; returns whether any was dropped. */
  async #makeRoom(): Promise<boolean> {
    const tooLarge = () => folderExceeds(this.#folder, this.#mostBytes)
    if (!(await tooLarge())) return false
    await this.#clear(true)
    let dropped = false
    while (await tooLarge()) {
      if (!(await this.points.dropForRoom())) {
        this.#host.log.warn('the newest saved points take more of the disk than they may', { most: this.#mostBytes })
        break
      }
      dropped = true
      await this.#clear(false)
    }
    return dropped
  }

  /** Removes the trees that no point needs; `all` also removes loose objects where no tree was dropped. */
  async #clear(all: boolean): Promise<void> {
    const kept = new Set(this.points.all.flatMap(({ trees }) => Object.values(trees)))
    const held = new Set(this.points.all.flatMap(({ trees }) => Object.keys(trees)))
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const scope = readPlain(join(this.#folder, name, 'ready'))?.trimEnd()
      if (scope === undefined) continue
      const store = await this.store(scope)
      if (!held.has(scope)) {
        this.#stores.delete(scope)
        await store.remove()
      } else if ((await store.drop(kept)) || all) await store.collect()
    }
  }

  get #folder(): string {
    return join(this.#host.place.folder, 'stores')
  }

  /** The point with an id; refuses an unknown one. */
  get(id: string): StoredPoint {
    return this.points.find(id) ?? refuse('not-found', `there is no saved point ${JSON.stringify(id.slice(0, 80))}`)
  }

  async #changed(from: { [scope: string]: string }, to: { [scope: string]: string }): Promise<Map<string, string[]>> {
    const found = new Map<string, string[]>()
    for (const { scope, path } of await this.between(from, to))
      (found.get(scope) ?? found.set(scope, []).get(scope)!).push(path.path)
    // A repository without saved files still needs a point when it is added or removed.
    for (const scope of new Set([...Object.keys(from), ...Object.keys(to)]))
      if ((from[scope] === undefined) !== (to[scope] === undefined) && !found.has(scope)) found.set(scope, [])
    return found
  }
}
