import { constants } from 'node:fs'
import { lstat, open, readlink, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { OpenRepo } from '../repositories/repositories.js'
import type { FileDiff } from '../records.js'
import type { Objects } from './objects.js'
import { isModule, type TreeEntryAt } from './tree-entries.js'

/** One side of a comparison: its bytes, or that it is too large to be shown. */
export type FileSide = Buffer | 'large'

/** The most bytes of a side that are shown. */
export const MOST_SIDE = 512 * 1024
const LOOKED_AT = 8000

/** Whether git would treat these bytes as binary. */
export const isBinary = (side: FileSide | undefined): boolean =>
  side !== undefined && side !== 'large' && side.subarray(0, LOOKED_AT).includes(0)

/** The answer of a call with both sides. */
export const fileDiffOf = (before: FileSide | undefined, after: FileSide | undefined): FileDiff => {
  if (isBinary(before) || isBinary(after)) return { binary: true }
  if (before === 'large' || after === 'large') return { truncated: true }
  return {
    ...(before && { before: before.toString() }),
    ...(after && { after: after.toString() }),
  }
}

/** The content of an entry; of a submodule the line that git diff shows. */
export const sideOfEntry = async (
  objects: Objects,
  { git }: OpenRepo,
  entry: TreeEntryAt | undefined,
  most = MOST_SIDE,
): Promise<FileSide | undefined> => {
  if (!entry || entry.type === 'tree') return undefined
  if (isModule(entry)) return Buffer.from(`Subproject commit ${entry.id}\n`)
  return (await objects.content(git, entry, most)).bytes ?? 'large'
}

/**
 * What lies at a path of the working tree, no link on the way: a file's bytes or a link's target.
 *
 * @param whole With `part`, the first bytes of a larger file.
 */
export const sideOnDisk = async (
  dir: string,
  path: string,
  most = MOST_SIDE,
  whole: 'whole' | 'part' = 'whole',
): Promise<FileSide | undefined> => {
  const folder = dirname(join(dir, path))
  if ((await realpath(folder).catch(() => undefined)) !== folder) return undefined
  const found = await lstat(join(dir, path)).catch(() => undefined)
  if (found?.isSymbolicLink()) return Buffer.from(await readlink(join(dir, path)))
  if (!found?.isFile()) return undefined
  if (found.size > most && whole === 'whole') return 'large'
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
  const handle = await open(join(dir, path), flags).catch(() => undefined)
  try {
    if (!handle || !(await handle.stat()).isFile()) return undefined
    const room = Math.min(most, found.size) + 1
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(room), 0, room, 0)
    return bytesRead > most && whole === 'whole' ? 'large' : buffer.subarray(0, bytesRead)
  } finally {
    await handle?.close()
  }
}
