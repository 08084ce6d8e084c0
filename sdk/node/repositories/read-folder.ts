import { readdirSync } from 'node:fs'
import { DEPENDENCY_FOLDERS, NOT_SEARCHED } from './folders-with-git.js'
import { stateStamp } from './state-stamp.js'

/** A cached folder of the workspace; valid while its stamp is unchanged. */
export interface ReadFolder {
  readonly stamp: string
  readonly git: boolean
  readonly inner: readonly string[]
  readonly named: readonly string[]
}

const EMPTY: ReadFolder = { stamp: '', git: false, inner: [], named: [] }

const readFolder = (path: string, stamp: string): ReadFolder => {
  const found = { stamp, git: false, inner: [] as string[], named: [] as string[] }
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.name === '.git') found.git = !entry.isSymbolicLink()
      else if (!entry.isDirectory()) continue
      else if (DEPENDENCY_FOLDERS.has(entry.name)) found.named.push(entry.name)
      else if (!NOT_SEARCHED.has(entry.name)) found.inner.push(entry.name)
    }
  } catch {
    return EMPTY
  }
  return found
}

/** A folder as it was read before, or read now if it changed. */
export const knownFolder = (before: ReadonlyMap<string, ReadFolder>, place: string, path: string): ReadFolder => {
  const now = stateStamp(place)
  if (!now) return EMPTY
  const known = before.get(path)
  if (known?.stamp === now.stamp) return known
  // The stamp was taken before the folder is read, so a change in between is detected next time.
  return readFolder(place, now.racy ? '' : now.stamp)
}
