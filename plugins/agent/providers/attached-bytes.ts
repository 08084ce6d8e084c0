import { constants } from 'node:fs'
import { open, readlink, realpath } from 'node:fs/promises'

const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * The bytes of an attached file of at most so many bytes, by the real path that it had when it was attached; undefined:
 * there is none any more.
 *
 * Turns write where it lies: a link, also of a folder on the way, would lead out of the workspace, and a pipe would
 * block the read.
 */
export const attachedBytes = async (absolute: string, most: number): Promise<Buffer | undefined> => {
  try {
    await using file = await open(absolute, FILE)
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > most) return undefined
    const real = process.platform === 'linux' ? readlink(`/proc/self/fd/${file.fd}`) : realpath(absolute)
    return (await real) === absolute ? await file.readFile() : undefined
  } catch {
    return undefined
  }
}
