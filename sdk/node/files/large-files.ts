import { lstatSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { bytesWords } from '../../sizes.js'
import { bytePath } from '../byte-names.js'

/** The largest file of a private copy that is committed. */
export const LARGEST_FILE = 512 * 1024 * 1024

/** The largest file whose content is shown; of a larger one only the size is. */
export const LARGEST_SHOWN = 64 * 1024 * 1024

const BATCH = 256

/** What is said of a file that is larger. */
export const tooLarge = (path: string, size: number): string =>
  `${path} has ${bytesWords(size)}, and files of a private copy are committed up to ${bytesWords(LARGEST_FILE)}: `
  + 'it stays in the copy and does not land'

/** The plain files among these paths of a folder that are larger than so many bytes; nothing is read. */
export const largeFiles = async (
  folder: string,
  paths: readonly string[],
  most = LARGEST_FILE,
): Promise<Map<string, Stats>> => {
  const found = new Map<string, Stats>()
  for (const [at, path] of paths.entries()) {
    if (at % BATCH === BATCH - 1) await new Promise<void>(resolve => setImmediate(resolve))
    const stat = statOf(join(folder, path))
    if (stat?.isFile() && stat.size > most) found.set(path, stat)
  }
  return found
}

/** Those of these paths of a folder that are neither file, link nor folder, such as a pipe: git cannot hold them. */
export const otherThanFiles = (folder: string, paths: readonly string[]): Set<string> =>
  new Set(
    paths.filter(path => {
      const stat = statOf(join(folder, path))
      return stat !== undefined && !stat.isFile() && !stat.isSymbolicLink() && !stat.isDirectory()
    }),
  )

/** A folder above it may have become a file meanwhile, or closed. */
const statOf = (path: string): Stats | undefined => {
  try {
    return lstatSync(bytePath(path))
  } catch {
    return undefined
  }
}
