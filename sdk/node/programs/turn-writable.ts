import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { contains } from '../files/paths.js'

/** Folders that all users can write. */
const SHARED = ['/tmp', '/var/tmp', '/dev/shm']

const declared = new Set<string>()

/** Declares folders that turns can write; the daemon starts no program from them. */
export const declareTurnWritable = (folders: readonly string[]): void => {
  for (const folder of folders) for (const path of [folder, realOf(folder)]) declared.add(path)
}

/** The number of declared folders; cached decisions are invalid once it changes. */
export const declarations = (): number => declared.size

/** Whether a turn can write at an absolute path: in the workspace, the data folder or a folder of temporary files. */
export const isTurnWritable = (path: string): boolean =>
  [...declared, ...SHARED, realOf(tmpdir())].some(folder => folder !== '/' && contains(folder, path))

/** The real path; the path itself if it does not exist. */
export const realOf = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
