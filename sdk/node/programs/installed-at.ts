import { access, constants, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { installedFolders } from './list-env.js'

const MODULES = `${sep}node_modules${sep}`

/**
 * The folders that a program needs besides those of the system: the folder of its name, and the folder of its real path
 * or the packages around that.
 */
export const installedAt = async (path: string): Promise<string[]> => {
  const real = await realpath(path)
  const at = real.indexOf(MODULES)
  const own = at === -1 ? dirname(real) : join(real.slice(0, at), 'node_modules')
  return [...new Set([dirname(path), own])]
}

/** Finds a program that turns start: looks a name up in the daemon's PATH, then in `folders`. */
export const programNamed = async (name: string, folders: readonly string[] = []): Promise<string | undefined> => {
  const places = isAbsolute(name) ? [name] : [...installedFolders(), ...folders].map(folder => join(folder, name))
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
