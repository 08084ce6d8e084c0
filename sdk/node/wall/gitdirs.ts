import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** The folder, in the data folder, of the git folders of repositories that the daemon cloned or began. */
export const gitdirsIn = (data: string): string => join(data, 'gitdirs')

/** These git folders. */
export const everyGitdir = async (data: string): Promise<string[]> => {
  const names = await readdir(gitdirsIn(data)).catch(() => [] as string[])
  return names.map(name => join(gitdirsIn(data), name))
}
