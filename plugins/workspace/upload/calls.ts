import { randomBytes } from 'node:crypto'
import { constants, copyFile, open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal, refuse, type Caller, type Handlers, type Host, ignored } from '../../../sdk/index.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { closedAs } from '../../../sdk/node/files/closed-names.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { flushFolder, TEMPORARY } from '../../../sdk/node/files/files.js'
import { openParent, openPath, type OpenedParent, type PathTree } from '../../../sdk/node/files/open-path.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import { assertBase, bytesOfText, presentFile, unwritable } from '../files/write.js'
import { sharedTree } from '../../../sdk/node/access/caller-tree.js'
import type { WorkspaceChanges } from '../watch/changes.js'
import type { UploadCalls, UploadProgress } from './contract.js'
import { hashOfFile, lengthOf, stagePart, sweepUploads, writePart, type PartSource } from './staging.js'

const MOST_CONTENT = 16 * 1024 * 1024
const MOST_LISTED = 20_000
const SWEEP_MS = 3_600_000

interface Wanted {
  readonly path: string
  readonly baseHash?: string
  readonly mtime?: number
}

const mayWriteEverywhere = ({ kind, role }: Caller): boolean =>
  kind === 'session' && (role === 'maintainer' || role === 'owner')

/** The tree for an upload: attachments are in no area, and everyone who may start turns can write them. */
const treeOf = async (host: Host, path: string, caller: Caller): Promise<PathTree> => {
  const tree = await sharedTree(host, { caller })
  const inbox = closedAs(segmentsOf(path)) === 'inbox'
  if (!inbox && !mayWriteEverywhere(caller))
    refuse('forbidden', 'an upload elsewhere than to the attachments takes a signed-in maintainer')
  return inbox ? { ...tree, reach: undefined } : tree
}

/** Moves a complete file to its path atomically; returns the path and the changes. */
const place = async (
  tree: PathTree,
  { path, baseHash, mtime }: Wanted,
  fill: (parent: OpenedParent, present: boolean) => Promise<{ from: string; handle: FileHandle }>,
): Promise<{ path: string; changed: string[] }> => {
  const before = await presentFile(tree, path)
  assertBase(path, baseHash, before?.hash)
  const real = before?.path ?? path.replace(/\/$/, '')
  await using parent = await openParent(tree, real, { make: true, existing: before !== undefined })
  const { from, handle } = await fill(parent, before !== undefined)
  await handle.chmod(before?.mode ?? 0o666 & ~process.umask())
  if (mtime !== undefined) await handle.utimes(mtime / 1000, mtime / 1000)
  failpoint('workspace.upload.whole')
  await rename(from, parent.target).catch(unwritable(path))
  await flushFolder(parent.at)
  return { path: real, changed: [...parent.made, real] }
}

/** Receives files. */
export const uploadCalls = (host: Host, changes: WorkspaceChanges, locks: KeyedMutex): Handlers<UploadCalls> => {
  const { workspace } = host.place
  const sweep = () =>
    void sweepUploads(workspace).catch(error => host.log.warn('removing old uploads failed', { error: String(error) }))
  sweep()
  const sweeper = setInterval(sweep, SWEEP_MS).unref()
  host.signal.addEventListener('abort', () => clearInterval(sweeper), { once: true })

  /** A write at an offset: into a copy of the file, which then replaces it. */
  const whole = (tree: PathTree, wanted: Wanted, offset: number, part: PartSource): Promise<UploadProgress> =>
    locks.with('write', async () => {
      let hash = ''
      let temporary: string | undefined
      let handle: FileHandle | undefined
      try {
        const { path, changed } = await place(tree, wanted, async (parent, present) => {
          temporary = join(parent.at, TEMPORARY + randomBytes(9).toString('hex'))
          const size = present && offset > 0 ? (await stat(parent.target)).size : 0
          if (offset > size)
            refuse('invalid', `offset: expected at most ${size}, the size of the file, found ${offset}`, {
              errors: [{ path: 'offset', expected: `at most ${size}`, value: String(offset) }],
            })
          if (offset > 0) await copyFile(parent.target, temporary, constants.COPYFILE_FICLONE)
          handle = await open(temporary, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
          await writePart(handle, part, offset)
          hash = await hashOfFile(handle)
          return { from: temporary, handle }
        })
        changes.note(changed)
        return { ok: true, path, received: offset + lengthOf(part), done: true, hash }
      } catch (error) {
        if (temporary !== undefined) await rm(temporary, { force: true }).catch(ignored('the failure before it counts'))
        return unwritable(wanted.path)(error)
      } finally {
        await handle?.close()
      }
    })

  return {
    'POST /workspace/upload': async ({ path, offset = 0, size, mtime, baseHash, content, bytes }, { caller }) => {
      const part: PartSource = bytes ?? bytesOfText(content ?? '', 'base64')
      if (Buffer.isBuffer(part) && part.length > MOST_CONTENT)
        refuse('too-large', `content: expected at most ${MOST_CONTENT} bytes, found ${part.length}: send them as bytes`)
      const tree = await treeOf(host, path, caller)
      const wanted = { path, ...(baseHash !== undefined && { baseHash }), ...(mtime !== undefined && { mtime }) }
      if (size === undefined) return whole(tree, wanted, offset, part)
      return locks.with(`upload ${path}`, async () => {
        // Checks whether the path may be written before storing anything.
        const before = await presentFile(tree, path)
        if (offset === 0) assertBase(path, baseHash, before?.hash)
        await using _ = await openParent(tree, before?.path ?? path, { make: true, existing: before !== undefined })
        let done: { path: string; hash: string } | undefined
        const { received } = await stagePart(
          workspace,
          { path, size, by: caller.actor },
          offset,
          part,
          (staged, handle) =>
            locks.with('write', async () => {
              const hash = await hashOfFile(handle)
              const placed = await place(tree, wanted, async () => ({ from: staged.place, handle }))
              changes.note(placed.changed)
              done = { path: placed.path, hash }
            }),
        ).catch(unwritable(path))
        return {
          ok: true,
          path: done?.path ?? path,
          received,
          done: done !== undefined,
          ...(done && { hash: done.hash }),
        }
      })
    },

    'POST /workspace/upload-diff': async ({ files }, context) => {
      if (files.length > MOST_LISTED)
        refuse('too-large', `files: expected at most ${MOST_LISTED}, found ${files.length}: ask for fewer at a time`)
      const tree = await sharedTree(host, context)
      const skip: string[] = []
      for (const { path, size, mtime } of files) {
        try {
          await using found = await openPath(tree, path)
          const same = (ms: number) => Math.floor(ms / 1000) === Math.floor(mtime / 1000)
          if (found?.stats.isFile() && found.stats.size === size && same(found.stats.mtimeMs)) skip.push(path)
        } catch (error) {
          if (!(error instanceof Refusal)) throw error
        }
      }
      return { skip }
    },
  }
}
