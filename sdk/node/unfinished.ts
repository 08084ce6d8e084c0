import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { sweepTemporaries } from './files/disk.js'
import { sweepTemporary } from './files/files.js'
import { COPIES, isUnfinishedCopy } from './wall/settings-copy.js'
import { NOTES } from './wall/sources.js'

/** Removes what a killed daemon left half-written: files, journals, and what is shown inside walls. */
export const sweepUnfinished = async (data: string): Promise<void> => {
  for (const folder of ['files', 'journals']) await sweepTemporaries(join(data, folder))
  await sweepTemporary(join(data, NOTES))
  const copies = join(data, NOTES, COPIES)
  for (const name of await readdir(copies).catch(() => [] as string[])) {
    const path = join(copies, name)
    const found = isUnfinishedCopy(name) ? await lstat(path).catch(() => undefined) : undefined
    if (found && found.mtimeMs < performance.timeOrigin) await rm(path, { recursive: true, force: true })
  }
}
