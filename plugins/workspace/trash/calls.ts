import { randomBytes } from 'node:crypto'
import { lstat, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { accessTo, isWithin, refuse, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { flushFolder, TEMPORARY } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { openParent, openPath, type OpenedParent, type PathTree, shownPath } from '../../../sdk/node/files/open-path.js'
import { record } from '../../../sdk/node/record/record.js'
import { pathIn } from '../tree/ignore-rules.js'
import { unwritable } from '../files/write.js'
import { sharedTree } from '../../../sdk/node/access/caller-tree.js'
import type { WorkspaceChanges } from '../watch/changes.js'
import { assertIdle, endTerminalsIn } from './busy.js'
import { copyAll } from './copy.js'
import type { TrashCalls } from './contract.js'
import { measure } from './measure.js'
import { assertSeen, NOTHING, seenAt } from './stamp.js'
import { MOST_TRASH, type TrashStore } from './trash-store.js'

const PAGE = 100
const MOST_PAGE = 500
const MOST_COPIED = { files: 1_000_000, bytes: Number.MAX_SAFE_INTEGER }

const isThere = async ({ target }: OpenedParent): Promise<boolean> =>
  (await lstat(target).catch(error => (codeOf(error) === 'ENOENT' ? undefined : Promise.reject(error)))) !== undefined

const realOf = ({ path, name }: OpenedParent): string => pathIn(path, name)

/** Opens the parent folder of an existing path; undefined: it does not exist. */
const found = async (tree: PathTree, path: string, reads = false): Promise<OpenedParent | undefined> => {
  const above = dirname(path.replace(/\/$/, ''))
  const folder = above === '.' || path.startsWith('/') ? undefined : await openPath(tree, above)
  if (above !== '.' && !path.startsWith('/')) {
    await folder?.close()
    if (!folder) return undefined
  }
  const parent = await openParent(tree, path, { existing: true, reads })
  if (await isThere(parent)) return parent
  await parent.close()
  return undefined
}

/** The stamp of what is at a path, without making the folders on the way. */
const stampAt = async (tree: PathTree, path: string): Promise<string> => {
  await using parent = await found(tree, path)
  return (parent ? await seenAt(parent.target) : NOTHING).stamp
}

const needed = async (tree: PathTree, path: string, reads = false): Promise<OpenedParent> =>
  (await found(tree, path, reads)) ?? refuse('not-found', `nothing in the workspace is named ${shownPath(path)}`)

interface TrashDeps {
  readonly host: Host
  readonly changes: WorkspaceChanges
  readonly locks: KeyedMutex
  readonly trash: TrashStore
}

/** Moves a file or folder into the trash. */
const toTrash = async ({ host, trash }: TrashDeps, parent: OpenedParent, context: Context): Promise<string> => {
  const path = realOf(parent)
  const extent = await measure(
    parent.target,
    MOST_TRASH,
    ({ bytes, files }) =>
      `${shownPath(path)} has more than ${bytes} bytes or ${files} files, which the trash does not hold: `
      + 'delete it with permanent',
  )
  const id = await trash.take(parent, { path, by: context.caller.actor, extent })
  await record(host, { type: 'workspace.deleted', extra: { path, trashId: id, permanent: false } }, context)
  return id
}

/** What a new path may replace. */
interface Replacing {
  readonly overwrite: boolean
  /** The stamp of what somebody saw there. */
  readonly expect: string | undefined
}

/** Makes a path free, or refuses. */
const cleared = async (
  deps: TrashDeps,
  parent: OpenedParent,
  { overwrite, expect }: Replacing,
  context: Context,
): Promise<void> => {
  await assertSeen(parent.target, realOf(parent), expect)
  const there = await lstat(parent.target).catch(() => undefined)
  if (!there) return
  const path = realOf(parent)
  if (!overwrite || there.isDirectory())
    refuse(
      'conflict',
      `${shownPath(path)} is there already${there.isDirectory() ? ', and it is a folder' : ': ask with overwrite'}`,
    )
  await toTrash(deps, parent, context)
}

/** Deletes, restores, moves and copies. */
export const trashCalls = (deps: TrashDeps): Handlers<TrashCalls> => {
  const { host, changes, locks, trash } = deps
  const alone = <T>(work: () => Promise<T>) => locks.with('write', work)
  return {
    'DELETE /workspace/entry': ({ path, permanent = false, mode = 'apply', expect }, context) =>
      alone(async () => {
        await using parent = await found(await sharedTree(host, context), path)
        if (mode === 'check') return { ok: true, ...(parent ? await seenAt(parent.target) : NOTHING) }
        if (!parent) return { ok: true }
        const real = realOf(parent)
        await assertIdle(host, real, parent.target)
        await assertSeen(parent.target, real, expect)
        await endTerminalsIn(host, real, context)
        if (!permanent) {
          const trashId = await toTrash(deps, parent, context)
          changes.note([real])
          return { ok: true, trashId }
        }
        await trash.remove(parent)
        changes.note([real])
        await record(host, { type: 'workspace.deleted', extra: { path: real, permanent } }, context)
        return { ok: true }
      }),

    'GET /workspace/trash': async ({ limit = PAGE, before = Infinity }, context) => {
      const { reach } = await sharedTree(host, context)
      const visible = trash.items.filter(({ path }) => accessTo(reach, path) !== undefined)
      const left = visible.filter(({ deletedAt }) => deletedAt < before)
      const items = left.slice(0, Math.min(limit, MOST_PAGE))
      return { items, bytes: trash.bytes, ...(left.length > items.length && { before: items.at(-1)!.deletedAt }) }
    },

    'POST /workspace/restore': ({ id, to }, context) =>
      alone(async () => {
        const item = trash.find(id)
        if (item.restored) return { ok: true, path: item.restored.path }
        const how = { make: true, was: to === undefined }
        await using parent = await openParent(await sharedTree(host, context), to ?? item.path, how)
        const path = realOf(parent)
        if (await isThere(parent)) refuse('conflict', `${shownPath(path)} is there already: restore to another path`)
        await trash.restore(id, parent, path)
        changes.note([...parent.made, path])
        await record(host, { type: 'workspace.restored', extra: { path, trashId: id } }, context)
        return { ok: true, path }
      }),

    'POST /workspace/move': ({ from, to, overwrite = false, mode = 'apply', expect }, context) =>
      alone(async () => {
        const tree = await sharedTree(host, context)
        await using source = await needed(tree, from)
        if (mode === 'check') return { ok: true, stamp: await stampAt(tree, to) }
        const real = realOf(source)
        await assertIdle(host, real, source.target)
        await using target = await openParent(tree, to, { make: true })
        const place = realOf(target)
        if (place === real) return { ok: true }
        if (isWithin(real, place)) intoItself(from, to)
        const same = await sameEntry(source, target)
        if (!same) await cleared(deps, target, { overwrite, expect }, context)
        await moved(source, target, from)
        changes.note([...target.made, real, place])
        return { ok: true }
      }),

    'POST /workspace/copy': ({ from, to, overwrite = false, mode = 'apply', expect }, context) =>
      alone(async () => {
        const tree = await sharedTree(host, context)
        await using source = await needed(tree, from, true)
        const real = realOf(source)
        const extent = await measure(
          source.target,
          MOST_COPIED,
          ({ files }) => `${shownPath(from)} has more than ${files - 1} files, and so many are copied at most`,
        )
        const { files, bytes } = extent
        if (mode === 'check') return { ok: true, files, bytes, stamp: await stampAt(tree, to) }
        await using target = await openParent(tree, to, { make: true })
        const place = realOf(target)
        if (isWithin(real, place)) intoItself(from, to)
        await assertSeen(target.target, place, expect)
        if (!overwrite && (await isThere(target))) await cleared(deps, target, { overwrite, expect }, context)
        await staged(source.target, target, from, () => cleared(deps, target, { overwrite, expect }, context))
        changes.note([...target.made, place])
        return { ok: true, files, bytes }
      }),
  }
}

const intoItself = (from: string, to: string): never =>
  refuse('invalid', `to: expected a path outside of ${shownPath(from)}, found ${shownPath(to)}`, {
    errors: [{ path: 'to', expected: `a path outside of ${shownPath(from)}`, value: to }],
  })

/** On a case-insensitive file system, another spelling of the same name. */
const sameEntry = async (one: OpenedParent, other: OpenedParent): Promise<boolean> => {
  const [a, b] = await Promise.all([one, other].map(({ target }) => lstat(target).catch(() => undefined)))
  return (
    a !== undefined
    && b !== undefined
    && a.ino === b.ino
    && a.dev === b.dev
    && realOf(one) !== realOf(other)
    && realOf(one).toLowerCase() === realOf(other).toLowerCase()
  )
}

/** Copies into a temporary name, which becomes the target when it is whole. */
const staged = async (
  from: string,
  target: OpenedParent,
  named: string,
  clear: () => Promise<void> = async () => {},
): Promise<void> => {
  const temporary = join(target.at, TEMPORARY + randomBytes(9).toString('hex'))
  try {
    await copyAll(from, temporary, named)
    failpoint('workspace.copy.staged')
    await clear()
    await rename(temporary, target.target)
  } catch (error) {
    await rm(temporary, { recursive: true, force: true })
    unwritable(named)(error)
  }
  await flushFolder(target.at)
}

const moved = async (source: OpenedParent, target: OpenedParent, named: string): Promise<void> => {
  try {
    await rename(source.target, target.target)
  } catch (error) {
    if (codeOf(error) !== 'EXDEV') unwritable(named)(error)
    await staged(source.target, target, named)
    await rm(source.target, { recursive: true, force: true })
  }
  await flushFolder(target.at)
  await flushFolder(source.at)
}
