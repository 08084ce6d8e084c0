import type { FileHandle } from 'node:fs/promises'

/** The workspace folder of published files. */
export const OUTBOX = 'public'

/** What changes when a file does: its place on the disk, its size and its times. */
export const diskIdentityOf = async (handle: FileHandle): Promise<string> => {
  const { dev, ino, size, mtimeNs, ctimeNs } = await handle.stat({ bigint: true })
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
}
