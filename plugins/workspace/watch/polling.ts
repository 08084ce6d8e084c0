import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { sweepTree } from '../tree/sweep.js'

const EVERY_MS = 30_000

/** The times of all folders that are not ignored. */
const timesOf = async (root: string): Promise<Map<string, number>> => {
  const times = new Map<string, number>()
  const at = (path: string) => lstatSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0
  times.set('.', at('.'))
  for await (const { path, kind } of sweepTree({ root, reach: undefined, readsGit: false }))
    if (kind === 'folder') times.set(path, at(path))
  return times
}

const differ = (one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): boolean =>
  one.size !== other.size || [...one].some(([path, time]) => other.get(path) !== time)

/** Compares the times of folders every 30 s when no watches are available; returns the function that ends it. */
export const pollFolders = (root: string, changed: () => void, every = EVERY_MS): (() => void) => {
  let last: ReadonlyMap<string, number> | undefined
  let [busy, stopped] = [false, false]
  const look = async () => {
    if (busy || stopped) return
    busy = true
    const now = await timesOf(root).finally(() => (busy = false))
    if (last && differ(last, now) && !stopped) changed()
    last = now
  }
  void look()
  const timer = setInterval(() => void look(), every).unref()
  return () => {
    stopped = true
    clearInterval(timer)
  }
}
