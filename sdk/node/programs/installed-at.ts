import { access, constants, readlink, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { installedFolders } from './list-env.js'

const MODULES = `${sep}node_modules${sep}`

/** As many links as Linux follows on the way to a file (path_resolution(7)). */
const MOST_LINKS = 40

/**
 * The names of a program, each a link to the next and the last its file. Every folder is named by its real path: behind
 * a wall, which shows these folders alone, no other name of them exists. So the names begin after the last link that
 * leads through the link of a folder.
 */
const namesOf = async (path: string): Promise<[first: string, ...more: string[]]> => {
  const inRealFolder = async (name: string) => join(await realpath(dirname(name)), basename(name))
  const first = await inRealFolder(path)
  let names: [string, ...string[]] = [first]
  for (let at = first, links = 0; links < MOST_LINKS; links++) {
    const text = await readlink(at).catch(() => undefined)
    if (text === undefined) break
    const next = resolve(dirname(at), text)
    at = await inRealFolder(next)
    names = at === next ? [...names, at] : [at]
  }
  return names
}

/** Folders of the system are shown anyway. */
const OF_SYSTEM = /^\/(?:bin|etc|lib|lib64|sbin|usr)(?:\/|$)/

/**
 * The folders that a program needs besides those of the system: the folder of each of its names, and the folder of its
 * file or the packages around that.
 */
export const installedAt = async (path: string): Promise<string[]> => {
  const [first, ...more] = await namesOf(path)
  const real = await realpath(path)
  const at = real.indexOf(MODULES)
  const own = at === -1 ? dirname(real) : join(real.slice(0, at), 'node_modules')
  const between = more.slice(0, -1).map(name => dirname(name))
  return [...new Set([dirname(first), ...between.filter(folder => !OF_SYSTEM.test(folder)), own])]
}

/**
 * Finds a program that turns start: looks a name up in the daemon's PATH, then in `folders`. The path is one that works
 * behind a wall too: it leads through no link of a folder.
 */
export const programNamed = async (name: string, folders: readonly string[] = []): Promise<string | undefined> => {
  const places = isAbsolute(name) ? [name] : [...installedFolders(), ...folders].map(folder => join(folder, name))
  for (const path of places)
    if (
      await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return (await namesOf(path))[0]
  return undefined
}
