import { access, constants, realpath } from 'node:fs/promises'
import { delimiter, dirname, isAbsolute, join, sep } from 'node:path'
import { listEnv } from './list-env.js'

const MODULES = `${sep}node_modules${sep}`

/**
 * The folders that a program at a path needs beside those of the system: where its name lies, and where what it leads
 * to lies, with the packages beside it.
 */
export const installedAt = async (path: string): Promise<string[]> => {
  const real = await realpath(path)
  const at = real.indexOf(MODULES)
  const own = at === -1 ? dirname(real) : join(real.slice(0, at), 'node_modules')
  return [...new Set([dirname(path), own])]
}

/** Where a program is that turns start: a name is looked up in their PATH, then in `folders`. */
export const programNamed = async (name: string, folders: readonly string[] = []): Promise<string | undefined> => {
  const places = isAbsolute(name)
    ? [name]
    : [...(listEnv().PATH ?? '').split(delimiter), ...folders].map(folder => join(folder, name))
  for (const path of places)
    if (
      await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return path
  return undefined
}
