import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'

/** The measured size. */
export interface Extent {
  readonly bytes: number
  readonly files: number
}

/** The number and bytes of the files below a path, not following links; refuses as soon as a limit is exceeded. */
export const measure = async (place: string, most: Extent, tooMuch: (found: Extent) => string): Promise<Extent> => {
  let [bytes, files] = [0, 0]
  const waiting = [place]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const stats = await lstat(at).catch(() => undefined)
    if (stats?.isDirectory()) {
      const names = await readdir(at, { encoding: 'buffer' }).catch(() => [])
      // A name that is not UTF-8 counts as a file without bytes: no path of a text names it.
      for (const name of names) waiting.push(join(at, name.toString()))
      continue
    }
    files += 1
    bytes += stats?.isFile() ? stats.size : 0
    if (files > most.files || bytes > most.bytes) refuse('too-large', tooMuch({ bytes, files }))
  }
  return { bytes, files }
}
