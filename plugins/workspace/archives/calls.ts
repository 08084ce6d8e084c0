import { randomBytes } from 'node:crypto'
import { chmod, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { refuse, type Handlers, type Host } from '../../../sdk/index.js'
import { archiveFormat, peeked, unpacked } from '../../../sdk/node/archives/archive-format.js'
import { isTarHeader, TAR_BLOCK, unpackTar } from '../../../sdk/node/archives/tar-entries.js'
import {
  badArchiveOf,
  nameOfArchive,
  SINGLE_CONTENT,
  unpackArchive,
} from '../../../sdk/node/archives/unpack-archive.js'
import { BadArchive, firstBytesOf, Unpacking } from '../../../sdk/node/archives/unpacking.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isFull, writeFailure } from '../../../sdk/node/files/disk.js'
import { flushFolder } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import {
  openExisting,
  openFile,
  openParent,
  openPath,
  type PathTree,
  shownPath,
} from '../../../sdk/node/files/open-path.js'
import { unwritable } from '../files/write.js'
import { LOCAL_FOLDER, openLocal } from '../../../sdk/node/files/local-folder.js'
import { pathIn } from '../tree/ignore-rules.js'
import { sharedTree } from '../../../sdk/node/access/caller-tree.js'
import type { WorkspaceChanges } from '../watch/changes.js'
import type { ArchiveCalls, SkippedEntry } from './contract.js'

const STAGED = 'unpacking'
const MOST_NUMBERED = 1_000
const MOST_SKIPPED = 200

/** An archive that is refused, as callers see it. */
const refused =
  (path: string, damaged: 'invalid' | 'unprocessable') =>
  (error: unknown): never => {
    if (isFull(error)) throw writeFailure(error)
    const bad = badArchiveOf(error)
    if (!bad) return unwritable(path)(error)
    return refuse(bad.kind === 'large' ? 'too-large' : damaged, `${shownPath(path)} cannot be unpacked: ${bad.message}`)
  }

/** A folder on the workspace's disk that no turn can write, removed afterwards. */
const inStaging = async <T>(root: string, work: (folder: string) => Promise<T>): Promise<T> => {
  await using staging = await openLocal(root, STAGED)
  const name = randomBytes(9).toString('hex')
  const folder = join(root, ...LOCAL_FOLDER, STAGED, name)
  await mkdir(join(staging.at, name), { mode: 0o700 })
  try {
    return await work(folder)
  } finally {
    await rm(join(staging.at, name), { recursive: true, force: true })
  }
}

/** Removes the files of an unpacking that a kill interrupted. */
const sweepStaging = async (root: string): Promise<void> => {
  if (!(await lstat(join(root, ...LOCAL_FOLDER, STAGED)).catch(() => undefined))) return
  await using staging = await openLocal(root, STAGED)
  for (const name of await readdir(staging.at)) {
    const found = await lstat(join(staging.at, name)).catch(() => undefined)
    if (found && found.ctimeMs < performance.timeOrigin)
      await rm(join(staging.at, name), { recursive: true, force: true })
  }
}

/** A free path beside the archive: its name without the extension, numbered if that is taken. */
const freeBeside = async (tree: PathTree, path: string): Promise<string> => {
  const name = basename(path)
  const bare = nameOfArchive(name)
  const stem = bare === '' || bare === name ? `${name}-unpacked` : bare
  for (let number = 1; number < MOST_NUMBERED; number++) {
    const to = pathIn(dirname(path), number === 1 ? stem : `${stem}-${number}`)
    await using parent = await openParent(tree, to)
    if (!(await lstat(parent.target).catch(() => undefined))) return to
  }
  return refuse('conflict', `to: ${MOST_NUMBERED} names beside ${shownPath(path)} are taken: name another`)
}

/** Unpacks archives. */
export const archiveCalls = (host: Host, changes: WorkspaceChanges, locks: KeyedMutex): Handlers<ArchiveCalls> => {
  const { workspace } = host.place
  void sweepStaging(workspace).catch(error =>
    host.log.warn('removing what was being unpacked failed', { error: String(error) }),
  )

  return {
    'POST /workspace/unpack': async ({ path, to, removeArchive = false }, context) => {
      const tree = await sharedTree(host, context)
      await using archive = await openExisting(tree, path)
      await using handle = await openFile(archive, path)
      if (to !== undefined) await assertEmpty(tree, to)
      const target = to?.replace(/\/$/, '') ?? (await freeBeside(tree, archive.path))
      return await inStaging(workspace, async folder => {
        const at = process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : archive.at
        const { single, unpacking } = await unpackArchive(host.place, at, {
          ...{ folder, to: target, size: archive.stats.size },
        }).catch(refused(path, 'unprocessable'))
        failpoint('workspace.unpack.staged')
        const real = await locks.with('write', async () => {
          if (to !== undefined) await assertEmpty(tree, to)
          await using parent = await openParent(tree, target, { make: true })
          if (single && to !== undefined) await rm(parent.target, { recursive: true, force: true })
          if (!single) await chmod(folder, 0o777 & ~process.umask())
          await rename(single ? join(folder, SINGLE_CONTENT) : folder, parent.target).catch(error =>
            ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(codeOf(error) ?? '')
              ? refuse('conflict', `${shownPath(target)} is there already and is not empty`)
              : unwritable(target)(error),
          )
          await flushFolder(parent.at)
          const placed = pathIn(parent.path, parent.name)
          changes.note([...parent.made, placed])
          if (removeArchive) {
            await using around = await openParent(tree, path, { existing: true })
            await rm(around.target, { force: true })
            changes.note([pathIn(around.path, around.name)])
          }
          return placed
        })
        return { ok: true, to: real, files: unpacking.files, bytes: unpacking.bytes, skipped: unpacking.skipped }
      })
    },

    'POST /workspace/upload-archive': async ({ to = '.', bytes }, context) => {
      if (!bytes)
        return refuse('invalid', 'expected the bytes of a tar as the body (application/octet-stream), found JSON')
      const tree = await sharedTree(host, context)
      const target = to.replace(/\/$/, '') || '.'
      await assertFolder(tree, target)
      return inStaging(workspace, async folder => {
        const isThere = async (path: string) => {
          await using found = await openPath(tree, path === '.' ? target : pathIn(target, path))
          return found !== undefined
        }
        const unpacking = new Unpacking({ folder, to: target, size: bytes.bytes, isThere })
        const head = await firstBytesOf(bytes.path, TAR_BLOCK)
        const format = archiveFormat(head)
        try {
          if (format !== 'tar' && format !== 'gzip')
            throw new BadArchive('damaged', 'it is no tar (expected one, plain or packed with gzip)')
          const { head: first, whole } = await peeked(await unpacked(host.place, format, bytes.path), TAR_BLOCK)
          if (!isTarHeader(first)) throw new BadArchive('damaged', 'what is packed in it is no tar')
          await unpackTar(Readable.from(whole, { objectMode: false }), unpacking)
          await unpacking.end()
        } catch (error) {
          refused('the upload', 'invalid')(error)
        }
        failpoint('workspace.archive.staged')
        const merged = await locks.with('write', () => merge(tree, folder, target))
        changes.note(merged.changed)
        return {
          ok: true,
          files: unpacking.files,
          skipped: [...unpacking.skipped, ...merged.skipped].slice(0, MOST_SKIPPED),
        }
      })
    },
  }
}

/** Refuses a target that has something in it. */
const assertEmpty = async (tree: PathTree, to: string): Promise<void> => {
  await using found = await openPath(tree, to)
  if (found && (!found.stats.isDirectory() || (await readdir(found.at)).length > 0))
    refuse('conflict', `${shownPath(to)} is there already and is not empty`)
}

/** Refuses a target that is a file. */
const assertFolder = async (tree: PathTree, to: string): Promise<void> => {
  await using found = await openPath(tree, to)
  if (found && !found.stats.isDirectory()) refuse('conflict', `to: expected a folder, found the file ${shownPath(to)}`)
}

/** Moves unpacked files to their target: new folders at once, files replacing those of the same name. */
const merge = async (
  tree: PathTree,
  staged: string,
  to: string,
): Promise<{ changed: string[]; skipped: SkippedEntry[] }> => {
  const changed: string[] = []
  const skipped: SkippedEntry[] = []
  if (to !== '.') {
    await using parent = await openParent(tree, to, { make: true })
    if (!(await lstat(parent.target).catch(() => undefined))) {
      await chmod(staged, 0o777 & ~process.umask())
      await rename(staged, parent.target).catch(unwritable(to))
      return { changed: [...parent.made, pathIn(parent.path, parent.name)], skipped }
    }
  }
  const waiting: [from: string, to: string][] = [[staged, to]]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [from, folder] = next
    for (const entry of await readdir(from, { withFileTypes: true })) {
      const path = pathIn(folder, entry.name)
      await using parent = await openParent(tree, path, { make: true })
      const there = await lstat(parent.target).catch(() => undefined)
      if (there && there.isDirectory() !== entry.isDirectory()) {
        skipped.push({ path, reason: there.isDirectory() ? 'a folder has its name' : 'a file has its name' })
        continue
      }
      if (there?.isDirectory()) {
        waiting.push([join(from, entry.name), path])
        continue
      }
      await rename(join(from, entry.name), parent.target).catch(unwritable(path))
      changed.push(...parent.made, pathIn(parent.path, parent.name))
    }
  }
  return { changed, skipped }
}
