import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { NOTES } from './sources.js'

/** Where a program sees the private copies that are mounted while it runs. */
export const copiesAt = (data: string): string => join(data, 'copies')

/** The folder inside `copyAt` in which the files of a copy are. */
export const treeIn = (copyAt: string): string => join(copyAt, 'tree')

/** Where a program sees a conversation's private copy with its git dirs. */
export const copyAt = (data: string, id: string): string => join(copiesAt(data), id)

/** An empty folder of this machine, on which the walls of such programs mount a file system of their own. */
export const laterFolder = (data: string): Promise<string> => emptyFolder(data, 'later')

/** An empty folder of this machine, on which the mounts of a copy are prepared. */
export const preparingFolder = (data: string): Promise<string> => emptyFolder(data, 'preparing')

const emptyFolder = async (data: string, name: string): Promise<string> => {
  const path = join(data, NOTES, name)
  await mkdir(path, { recursive: true, mode: 0o700 })
  return path
}
