import { posix } from 'node:path'
import {
  accessTo,
  covers,
  pathOfRepo,
  refuse,
  Refusal,
  type Context,
  type Handlers,
  type Host,
} from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import type { AccessView } from '../../sdk/node/access/access-view.js'
import { writeFailure } from '../../sdk/node/files/disk.js'
import { segmentsOf } from '../../sdk/node/files/paths.js'
import { hasZeros, presentSides, sideFile } from '../../sdk/node/files/side-files.js'
import { GitFailure } from '../../sdk/node/programs/git.js'
import { record } from '../../sdk/node/record/record.js'
import type { HistoryCalls, PointFileDiff, Snapshot, SnapshotChange } from './contract.js'
import { checkedScopePath } from './paths.js'
import type { StoredPoint } from './points.js'
import { checkRestorable, holdingAll } from './repositories.js'
import type { Restoring, RestoreOrder } from './restoring.js'
import type { SavedPoints } from './saved-points.js'

interface Trees {
  readonly [scope: string]: string
}
/** Which file of two ends is asked for. */
interface AskedFile {
  readonly id: string
  readonly scope: string
  readonly path: string
  readonly against?: string
}

type HistoryHost = Pick<Host, 'call' | 'serves' | 'place' | 'log'>

const MOST_LISTED = 500
const MOST_CHANGES = 5000
const MOST_COMPARED = 20_000
const MOST_SIDE = 512 * 1024
/** What no turn writes. */
const CONFIG = '.sandbox/config'

/** Turns git's message about a full disk into a refusal, because the caller can fix it. */
const orFull = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (error instanceof GitFailure && /No space left on device/.test(error.stderr))
      throw new Refusal('too-large', 'the disk is full: nothing was changed; make room and ask again', { cause: error })
    throw writeFailure(error)
  }
}

const at = (scope: string, path: string): string => posix.join(pathOfRepo(scope), path)

/** A point as a caller sees it; undefined: it changes nothing that they may see. */
const shown = (point: StoredPoint, { reach }: AccessView, changed: readonly string[]): Snapshot | undefined => {
  const { trees: _trees, touched: _touched, more: _more, label, by, conversationId, partial, ...rest } = point
  if (!reach)
    return {
      ...rest,
      ...(label !== undefined && { label }),
      ...(by !== undefined && { by }),
      ...(conversationId !== undefined && { conversationId }),
      ...(partial && { partial }),
    }
  const inside = changed.filter(path => accessTo(reach, path) !== undefined)
  if (inside.length === 0) return undefined
  const { skipped: _skipped, ...plain } = rest
  return { ...plain, scopes: plain.scopes.filter(scope => covers(reach, scope) !== 'none'), files: inside.length }
}

const bytesOfSides = (before: Buffer | 'large' | undefined, after: Buffer | 'large' | undefined): PointFileDiff => {
  const binary = (side: typeof before) => Buffer.isBuffer(side) && hasZeros(side)
  if (binary(before) || binary(after)) return { binary: true }
  if (before === 'large' || after === 'large') return { truncated: true }
  return { ...(before && { before: before.toString() }), ...(after && { after: after.toString() }) }
}

/** Serves the saved points. */
export const historyCalls = (host: HistoryHost, saved: SavedPoints, restoring: Restoring): Handlers<HistoryCalls> => {
  /** Every path that a point changed, also where not all were noted. */
  const changedIn = async (point: StoredPoint): Promise<readonly string[]> => {
    if (!point.more) return point.touched
    const before = saved.points.before(point, false)
    return (await saved.between(before?.trees ?? {}, point.trees)).map(({ scope, path }) => at(scope, path.path))
  }

  /** The two trees of a comparison. */
  const endsOf = async (id: string, against: string | undefined) => {
    const point = saved.get(id)
    if (against === undefined) return { from: saved.points.before(point, true)?.trees ?? {}, to: point.trees }
    const to = against === 'now' ? (await saved.alone(() => saved.now())).trees : saved.get(against).trees
    return { from: point.trees, to }
  }

  const assertHeld = (scope: string, from: Trees, to: Trees, { reach }: AccessView): void => {
    const held = from[scope] !== undefined || to[scope] !== undefined
    if (!held || covers(reach, scope) === 'none') refuse('not-found', `no point holds a repository ${scope}`)
  }

  /** Both sides of a file for the two ends that a point is compared between. */
  const contents = async (asked: AskedFile, most: number, caller: Context['caller']) => {
    const { id, scope, against } = asked
    const view = await accessViewFor(host, caller)
    const path = checkedScopePath(scope, asked.path)
    const absent = (): never => refuse('not-found', `${asked.path} of ${scope} is on neither side`)
    const place = at(scope, path)
    if (view.reach && (accessTo(view.reach, place) === undefined || !(await view.sees(place)))) absent()
    const { from, to } = await endsOf(id, against)
    if (from[scope] === undefined && to[scope] === undefined) absent()
    const store = await saved.store(scope)
    const before = await store.content(from[scope], path, most)
    const after = await store.content(to[scope], path, most)
    return before || after ? { path, before, after } : absent()
  }

  const restore = async (order: RestoreOrder & { readonly force?: boolean }, context: Context) => {
    const { id, scope, paths, force = false } = order
    if (paths && scope === undefined)
      refuse('invalid', 'scope: expected the repository of the paths, found none', {
        errors: [{ path: 'scope', expected: 'the repository of the paths' }],
      })
    const point = saved.get(id)
    const scopes = scope === undefined ? Object.keys(point.trees) : [scope]
    await checkRestorable(host, scopes, force, context)
    const done = await orFull(holdingAll(host, scopes, 'restore', context, () => restoring.restore(order, context)))
    const extra = {
      id,
      point: done.point,
      ...(scope !== undefined && { scope }),
      ...(paths && { paths: paths.slice(0, 20) }),
    }
    await record(host, { type: 'history.restored', outcome: 'ok', extra }, context)
    return done
  }

  const save = async (label: string | undefined, { caller }: Context) => {
    if (restoring.running) refuse('conflict', 'a restore is running: wait for its end')
    const { point, saved: isNew, partial } = await orFull(saved.save({ trigger: 'user', label, by: caller.actor }))
    return {
      ...(point && { id: point.id }),
      saved: isNew,
      at: point?.at ?? Date.now(),
      ...(partial.length > 0 && !caller.areas && { partial }),
    }
  }

  return {
    'GET /history/snapshots': async ({ limit = 100, before, path, intervals = false }, { caller }) => {
      const view = await accessViewFor(host, caller)
      const wanted = path === undefined ? undefined : segmentsOf(path, { existing: true }).join('/')
      const most = Math.min(limit, MOST_LISTED)
      const snapshots: Snapshot[] = []
      for (const point of saved.points.all.toReversed()) {
        if ((before !== undefined && point.at >= before) || (!intervals && point.trigger === 'interval')) continue
        const changed = wanted === undefined && !view.reach ? [] : await changedIn(point)
        if (wanted !== undefined && !changed.some(each => each === wanted || each.startsWith(`${wanted}/`))) continue
        const one = shown(point, view, changed)
        if (!one) continue
        if (snapshots.length === most) return { snapshots, before: snapshots.at(-1)!.at }
        snapshots.push(one)
      }
      return { snapshots }
    },
    'POST /history/snapshots': ({ label }, context) => save(label, context),
    'GET /history/diff': async ({ id, against, limit = 2000, after }, { caller }) => {
      const view = await accessViewFor(host, caller)
      const { from, to } = await endsOf(id, against)
      const changes = (await saved.between(from, to))
        .filter(({ scope, path }) => accessTo(view.reach, at(scope, path.path)) !== undefined)
        .map(({ scope, path }): SnapshotChange & { readonly key: string } => ({
          scope,
          ...path,
          key: `${scope}\n${path.path}`,
        }))
        .sort((one, other) => (one.key < other.key ? -1 : 1))
        .filter(({ key }) => after === undefined || key > after)
      const page = changes.slice(0, Math.min(limit, MOST_CHANGES))
      const more = changes.length > page.length
      return {
        changes: page.map(({ key: _key, ...change }) => change),
        ...(more && { hasMore: true, after: page.at(-1)!.key }),
        ...(against === 'now' && !view.reach && { now: { ...to } }),
      }
    },
    'GET /history/file-diff': async (input, { caller }) => {
      const { before, after } = await contents(input, MOST_SIDE, caller)
      return bytesOfSides(before?.bytes, after?.bytes)
    },
    'POST /history/restore': restore,
    'history.sides': async ({ folder, most, ...asked }, { caller }) => {
      const { path, before, after } = await contents(asked, most, caller)
      const fileOf = (side: typeof before) => sideFile(folder, side?.bytes, side?.id)
      return { path, ...presentSides(await fileOf(before), await fileOf(after)) }
    },
    'history.changed': async ({ id, scope, against }, { caller }) => {
      const view = await accessViewFor(host, caller)
      const { from, to } = await endsOf(id, against)
      assertHeld(scope, from, to, view)
      const changes = await (await saved.store(scope)).compared(from[scope], to[scope])
      const shownOnes = changes.filter(({ path }) => accessTo(view.reach, at(scope, path)) !== undefined)
      return { changes: shownOnes.slice(0, MOST_COMPARED) }
    },
    'history.snapshot': async order => {
      const { point, partial } = await orFull(saved.save(order))
      return { ...(point && { id: point.id }), ...(partial.length > 0 && { partial }) }
    },
    'history.rewind': (order, context) => restore({ ...order, keeps: [CONFIG] }, context),
    'history.rewound': async ({ id }) => ({ back: await restoring.wentThrough({ id, keeps: [CONFIG] }) }),
  }
}
