import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

const FOLDER_ITSELF = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/**
 * Does something in a folder in somebody else's reach, never in what a link in its place leads to; nothing where there
 * is none.
 */
export const inFolder = async (path: string, work: (at: string) => Promise<void>): Promise<void> => {
  const handle = await open(path, FOLDER_ITSELF).catch(() => undefined)
  if (!handle) return
  try {
    await work(process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path)
  } finally {
    await handle.close()
  }
}
