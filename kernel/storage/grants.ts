import { realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { WallGrants } from '../../sdk/host.js'
import { contains } from '../../sdk/node/files/paths.js'
import { isOfSystem } from '../../sdk/node/wall/system.js'
import { StartError } from '../config/start-error.js'

const realOf = (named: string): string | undefined => {
  try {
    return realpathSync(named.startsWith('~/') ? join(homedir(), named.slice(2)) : named)
  } catch {
    return undefined
  }
}

/** The real paths of the entries that exist. */
const present = (entries: readonly string[]): { named: string; path: string }[] =>
  entries.flatMap(named => {
    const path = realOf(named)
    return path === undefined ? [] : [{ named, path }]
  })

/**
 * Resolves a deployment's `wall.read` and `wall.write` to real paths; skips entries that do not exist.
 *
 * `closed` are files and folders of the daemon. Refuses a writable folder that contains one or lies in one, since a
 * turn could replace it.
 */
export const grantsOf = (
  { read = [], write = [] }: { readonly read?: readonly string[]; readonly write?: readonly string[] },
  closed: readonly string[],
): WallGrants => {
  const writable = present(write)
  for (const { named, path } of writable) {
    const met = closed.find(each => contains(path, each) || contains(each, path))
    if (met)
      throw new StartError(
        `wall.write: ${named} contains files of the sandbox itself (${met}): name a folder beside them`,
      )
    if (isOfSystem(path))
      throw new StartError(
        `wall.write: ${named} is part of the system, whose programs run outside the wall: name another folder`,
      )
    if (!statSync(path).isDirectory()) throw new StartError(`wall.write: expected a folder at ${named}, found a file`)
  }
  return { read: present(read).map(({ path }) => path), write: writable.map(({ path }) => path) }
}
