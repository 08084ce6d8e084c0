import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { contains } from '../files/paths.js'

/** Where everybody puts files. */
const SHARED = ['/tmp', '/var/tmp', '/dev/shm']

const declared = new Set<string>()

/** Says that turns of this daemon can write in these folders: nothing in them is a program of the daemon's own. */
export const declareTurnWritable = (folders: readonly string[]): void => {
  for (const folder of folders) for (const path of [folder, realOf(folder)]) declared.add(path)
}

/** How many folders were declared: what was judged before another one was is to be judged again. */
export const declarations = (): number => declared.size

/** Whether a turn can write at an absolute path: in the workspace, the data folder or a folder of temporary files. */
export const isTurnWritable = (path: string): boolean =>
  [...declared, ...SHARED, realOf(tmpdir())].some(folder => folder !== '/' && contains(folder, path))

/** The path with its links resolved, or as it is where nothing is there. */
export const realOf = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
