import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Counted for each file in addition to its content; otherwise empty files would be free. */
const FILE_OVERHEAD = 1024

/** Whether a folder exceeds the given bytes. */
export const folderExceeds = async (folder: string, most: number): Promise<boolean> => {
  let taken = 0
  const folders = [folder]
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    const here = at
    // Files removed meanwhile count nothing.
    for (const entry of await readdir(here, { withFileTypes: true }).catch(() => [])) {
      const path = join(here, entry.name)
      if (entry.isDirectory()) folders.push(path)
      taken +=
        FILE_OVERHEAD
        + (await lstat(path).then(
          ({ blocks }) => blocks * 512,
          () => 0,
        ))
      if (taken > most) return true
    }
  }
  return false
}
