import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { contains } from '../files/paths.js'

/** Folders for temporary files. Behind a wall they are others than those of the machine. */
const TEMPORARY = ['/tmp', '/var/tmp', '/dev/shm']

const declared = new Set<string>()

/** Declares folders that turns can write; the daemon starts no program from them. */
export const declareTurnWritable = (folders: readonly string[]): void => {
  for (const folder of folders) for (const path of [folder, realOf(folder)]) declared.add(path)
}

/** Declares what turns can write on a machine without a wall, besides what the daemon's user owns. */
export const declareNoWall = (): void => declareTurnWritable([...TEMPORARY, tmpdir()])

/** The number of declared folders; cached decisions are invalid once it changes. */
export const declarations = (): number => declared.size

/** Whether a turn can write at an absolute path of the machine: in the workspace, the data or a granted folder. */
export const isTurnWritable = (path: string): boolean =>
  [...declared].some(folder => folder !== '/' && contains(folder, path))

/** Whether a path, as a turn sees it behind its wall, lies in its own folders of temporary files. */
export const isTemporaryInside = (path: string): boolean => TEMPORARY.some(folder => contains(folder, path))

/** The real path; the path itself if it does not exist. */
export const realOf = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
