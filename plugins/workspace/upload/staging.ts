import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { type FileHandle, lstat, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { LOCAL_FOLDER, openLocal } from '../../../sdk/node/files/local-folder.js'

/** Received bytes: in memory, or in a file of the daemon. */
export type PartSource = Buffer | { readonly path: string; readonly bytes: number }

const KEPT_MS = 86_400_000
const STAGED = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW

/** Writes a part into an open file, from an offset on. */
export const writePart = async (handle: FileHandle, part: PartSource, offset: number): Promise<void> => {
  let at = offset
  for await (const piece of Buffer.isBuffer(part) ? [part] : createReadStream(part.path)) {
    const bytes = piece as Buffer
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, at)
      done += bytesWritten
      at += bytesWritten
    }
  }
  await handle.sync()
}

/** How many bytes a part has. */
export const lengthOf = (part: PartSource): number => (Buffer.isBuffer(part) ? part.length : part.bytes)

/** The SHA-256 of an open file. */
export const hashOfFile = async (handle: FileHandle): Promise<string> => {
  const hash = createHash('sha256')
  for await (const piece of handle.createReadStream({ start: 0, autoClose: false })) hash.update(piece as Buffer)
  return hash.digest('hex')
}

/** An upload in parts: a file on the workspace's disk for each path, size and caller. */
export interface StagedUpload {
  readonly place: string
  readonly received: number
}

/** Adds a part of an upload; refused if an earlier one is missing. */
export const stagePart = async (
  root: string,
  { path, size, by }: { path: string; size: number; by: string },
  offset: number,
  part: PartSource,
  complete: (staged: StagedUpload, handle: FileHandle) => Promise<void>,
): Promise<StagedUpload> => {
  await using folder = await openLocal(root, 'uploads')
  const name = createHash('sha256')
    .update(JSON.stringify([path, size, by]))
    .digest('hex')
  const place = join(folder.at, name)
  await using handle = await open(place, STAGED, 0o600)
  const before = (await handle.stat()).size
  const end = offset + lengthOf(part)
  if (offset > before && end > offset)
    refuse('conflict', `expected the part from byte ${before} on, found one from ${offset}`, {
      fields: { received: before },
    })
  if (end > size && end > offset)
    refuse('invalid', `offset: expected the part to end at byte ${size} at most, found ${end}`, {
      errors: [{ path: 'offset', expected: `a part that ends at byte ${size} at most`, value: String(offset) }],
    })
  await writePart(handle, part, offset)
  failpoint('workspace.upload.part')
  const staged = { place, received: Math.max(before, end > offset ? end : 0) }
  if (staged.received === size) await complete(staged, handle)
  return staged
}

/** Drops uploads that got no part for a day. */
export const sweepUploads = async (root: string, now = Date.now()): Promise<void> => {
  if (!(await lstat(join(root, ...LOCAL_FOLDER, 'uploads')).catch(() => undefined))) return
  await using folder = await openLocal(root, 'uploads')
  for (const name of await readdir(folder.at)) {
    const found = await lstat(join(folder.at, name)).catch(() => undefined)
    if (found && found.mtimeMs < now - KEPT_MS) await rm(join(folder.at, name), { force: true })
  }
}
