import { randomUUID } from 'node:crypto'
import { join, posix } from 'node:path'
import { isWithin, pathOfRepo, refuse, type Context, type Host } from '../../sdk/index.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { GitFailure } from '../../sdk/node/programs/git.js'
import { isFull } from '../../sdk/node/files/disk.js'
import { checkedScopePath } from './paths.js'
import type { RestoreFailure, Restored } from './contract.js'
import type { SavedPoints } from './saved-points.js'
import { inTheWay } from './in-the-way.js'
import type { TreePath } from './scope-store.js'
import type { StoredPoint } from './points.js'

/** A restore in progress: the target tree of each repository. */
interface RunningRestore {
  readonly id: string
  readonly point: string
  readonly by: string
  readonly trees: { readonly [scope: string]: string }
}

/** A restore to make. */
export interface RestoreOrder {
  readonly id: string
  readonly scope?: string | undefined
  readonly paths?: readonly string[] | undefined
  /** Paths of the workspace's own repository that stay as they are, where the whole workspace is restored. */
  readonly keeps?: readonly string[]
  /** The trees that somebody looked at. */
  readonly expect?: { readonly [scope: string]: string } | undefined
}

const FILE = 'restore'
const ROOT = 'root'
const TREE = /^[0-9a-f]{40,64}$/
const MOST_MOVED = 200
const MOST_NAMED = 5

const folderIn = (path: string): string => posix.normalize(path).replace(/\/$/, '')

/** Brings repositories back to a point; a restore that was cut off is finished at the next start. */
export class Restoring {
  readonly #host: Pick<Host, 'place' | 'files' | 'log'>
  readonly #saved: SavedPoints
  #running = false

  constructor(host: Pick<Host, 'place' | 'files' | 'log'>, saved: SavedPoints) {
    this.#host = host
    this.#saved = saved
  }

  get running(): boolean {
    return this.#running
  }

  /** Restores; the caller must hold every repository that is written. */
  async restore(order: RestoreOrder, { caller }: Context): Promise<Restored> {
    if (this.#running) refuse('conflict', 'another restore is running: wait for its end')
    this.#running = true
    try {
      return await this.#saved.alone(() => this.#restore(order, caller.actor))
    } finally {
      this.#running = false
    }
  }

  /** Completes a restore that a kill interrupted. */
  async recover(): Promise<void> {
    const begun = await this.#host.files.read<RunningRestore>(FILE)
    if (!begun) return
    await this.#saved.alone(async () => {
      const { failed } = await this.#write(begun.trees)
      for (const each of failed) this.#host.log.warn('finishing a restore failed in a repository', { ...each })
      await this.#saved.saveAlone({ trigger: 'restore', label: 'restored after a restart', by: begun.by })
      await this.#host.files.remove(FILE)
    })
  }

  /** Whether a restore of the whole workspace to a point went through, also one that a kill interrupted. */
  async wentThrough({ id, keeps }: Pick<RestoreOrder, 'id' | 'keeps'>): Promise<boolean> {
    const begun = await this.#host.files.read<RunningRestore>(FILE)
    await this.recover()
    if (begun) return begun.point === id
    const point = this.#saved.points.find(id)
    if (!point) return false
    return this.#saved.alone(async () => {
      const now = await this.#saved.now()
      const trees = await this.#whole(point, now, keeps)
      return Object.entries(trees).every(([scope, tree]) => now.trees[scope] === tree)
    })
  }

  async #restore(order: RestoreOrder, by: string): Promise<Restored> {
    const saved = this.#saved
    const point = saved.get(order.id)
    const before = await saved.saveAlone({
      trigger: 'pre-restore',
      label: `before going back to ${labelOf(point)}`,
      by,
    })
    const now = before.point
    if (!now || before.partial.length > 0)
      return refuse('failed', `no point could be saved of ${before.partial.join(', ')}: nothing was changed`)
    const trees = await this.#targets(order, point, now)
    await this.#assertSeen(order, now, Object.keys(trees))
    const changes = await saved.between(pick(now.trees, trees), trees)
    await this.#assertFree(changes, Object.keys(now.trees))
    const begun: RunningRestore = { id: randomUUID(), point: point.id, by, trees }
    await this.#host.files.write(FILE, begun)
    failpoint('history.restore.begun')
    const { failed } = await this.#write(trees)
    await saved.saveAlone({ trigger: 'restore', label: `back to ${labelOf(point)}`, by })
    await this.#host.files.remove(FILE)
    const lost = new Set(failed.map(({ scope }) => scope))
    const done = changes.filter(({ scope }) => !lost.has(scope))
    return {
      ok: true,
      point: now.id,
      restored: done.filter(({ path }) => path.status !== 'deleted').length,
      removed: done.filter(({ path }) => path.status === 'deleted').length,
      failed,
    }
  }

  /** Refuses to write where something is that no point holds. */
  async #assertFree(
    changes: readonly { readonly scope: string; readonly path: TreePath }[],
    scopes: readonly string[],
  ): Promise<void> {
    const { workspace } = this.#host.place
    for (const [scope, some] of Map.groupBy(changes, each => each.scope)) {
      const folder = pathOfRepo(scope)
      // What other repositories have by now is in the point that was saved before.
      const others = scopes.filter(each => each !== scope).map(pathOfRepo)
      const own = some.filter(({ path }) => !others.some(each => isWithin(each, posix.join(folder, path.path))))
      const found = await inTheWay(
        join(workspace, folder),
        own.map(({ path }) => path),
      )
      if (found.length === 0) continue
      const named = found.map(path => posix.join(folder, path)).join(', ')
      refuse('conflict', `${named}: in the way of files of the point, and in no point; move them away, then restore`)
    }
  }

  /** Refuses files that are not those that somebody looked at. */
  async #assertSeen({ expect, paths }: RestoreOrder, now: StoredPoint, scopes: readonly string[]): Promise<void> {
    if (!expect) return
    const moved: { scope: string; paths: string[] }[] = []
    for (const scope of scopes) {
      const [seen, found] = [expect[scope], now.trees[scope]]
      if (seen === found) continue
      const changed = await this.#changedSince(scope, seen, found)
      const touched = changed?.filter(each => !paths || paths.some(path => isWithin(folderIn(path), each)))
      if (touched?.length !== 0) moved.push({ scope, paths: (touched ?? []).slice(0, MOST_MOVED) })
    }
    if (moved.length === 0) return
    const names = moved.flatMap(each => each.paths.map(path => posix.join(pathOfRepo(each.scope), path)))
    const named = names.slice(0, MOST_NAMED).join(', ') || moved.map(({ scope }) => scope).join(', ')
    refuse('conflict', `the files are not what was seen (changed since: ${named}): look at the diff, then restore`, {
      fields: { now: { ...now.trees }, moved },
    })
  }

  /** The paths that differ from what was seen; undefined: what was seen is no state of this repository. */
  async #changedSince(scope: string, seen = '', found?: string): Promise<string[] | undefined> {
    if (!TREE.test(seen)) return undefined
    const store = await this.#saved.store(scope)
    try {
      return (await store.changes(seen, found)).map(({ path }) => path)
    } catch (error) {
      if (error instanceof GitFailure) return undefined
      throw error
    }
  }

  /** The target tree of each repository; one that did not exist at the point is not changed. */
  async #targets(
    { scope, paths, keeps }: RestoreOrder,
    point: StoredPoint,
    now: StoredPoint,
  ): Promise<{ [scope: string]: string }> {
    if (scope === undefined) return this.#whole(point, now, keeps)
    const tree = point.trees[scope] ?? refuse('not-found', `the point ${point.id} holds no repository ${scope}`)
    if (!paths) return { [scope]: tree }
    const store = await this.#saved.store(scope)
    const current = now.trees[scope]
    const checked = paths.map(path => checkedScopePath(scope, path))
    for (const path of checked)
      if (!(await store.holds(tree, path)) && !(current !== undefined && (await store.holds(current, path))))
        refuse('not-found', `${path} of ${scope} is neither in the point nor on disk`)
    return { [scope]: await store.mixed(current ?? tree, tree, checked) }
  }

  /** The trees of a point, with some paths of the workspace's own repository as they are now. */
  async #whole(
    { trees }: StoredPoint,
    now: Pick<StoredPoint, 'trees'>,
    keeps: readonly string[] = [],
  ): Promise<{ [scope: string]: string }> {
    const [then, root] = [trees[ROOT], now.trees[ROOT]]
    if (keeps.length === 0 || then === undefined || root === undefined) return { ...trees }
    return { ...trees, [ROOT]: await (await this.#saved.store(ROOT)).mixed(then, root, keeps) }
  }

  async #write(trees: { readonly [scope: string]: string }): Promise<{ failed: RestoreFailure[] }> {
    const { workspace, data, hidden, grants } = this.#host.place
    const failed: RestoreFailure[] = []
    const scopes = await this.#saved.scopes()
    for (const [scope, tree] of Object.entries(trees)) {
      try {
        const store = await this.#saved.store(scope)
        await store.write(tree, { workspace, data, hide: hidden, grants })
        const others = scopes.filter(each => each !== scope).map(each => join(workspace, pathOfRepo(each)))
        await store.restoreGit(data, others)
        failpoint('history.restore.written')
      } catch (error) {
        if (isFull(error)) this.#host.log.error('the disk is full during a restore', { scope })
        failed.push({ scope, message: error instanceof Error ? error.message.slice(0, 500) : String(error) })
      }
    }
    return { failed }
  }
}

const labelOf = ({ label, at }: StoredPoint): string => label ?? new Date(at).toISOString()

const pick = (trees: { readonly [scope: string]: string }, some: object): { [scope: string]: string } =>
  Object.fromEntries(Object.entries(trees).filter(([scope]) => scope in some))
