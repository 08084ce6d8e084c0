import { lstat, mkdir, readdir, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { failpoint } from '../failpoint.js'
import { flushFolder, flushFolders, readJson, writeAtomic } from './files.js'
import { codeOf, contains } from './paths.js'

/** Where a daemon's data folder says what is to move at the next start. */
export const MOVES = 'moves.json'

/** One name that goes to another place of the same disk. */
export interface Move {
  readonly from: string
  readonly to: string
}

/** Several folders that change their places together. */
export interface Moves {
  readonly version: 1
  /** What goes out of the way first; what is not there is passed over. */
  readonly away: readonly Move[]
  /** What comes in then. */
  readonly in: readonly Move[]
  /** A real path below which nothing is moved through a link. */
  readonly root?: string
}

const there = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    error => {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return false
      throw error
    },
  )

/** Writes down moves that the next start carries out: when this returns they happen, whatever comes. */
export const planMoves = (plan: string, moves: Omit<Moves, 'version'>): Promise<void> =>
  writeAtomic(plan, JSON.stringify({ version: 1, ...moves } satisfies Moves), { flush: true })

/** What became of moves that were written down. */
export type Carried = 'none' | 'done' | { readonly undone: unknown }

/**
 * Carries out what was written down, from wherever an earlier start was killed in it; where something stands in the
 * way, everything goes back to where it was.
 */
export const carryOut = async (plan: string): Promise<Carried> => {
  const moves = await readJson<Moves>(plan)
  if (!moves) return 'none'
  if (moves.version !== 1)
    throw new Error(`${plan}: expected version 1, found ${moves.version}; start the daemon that wrote it`)
  const { root } = moves
  try {
    for (const { from, to } of moves.away) {
      // It was moved already; what has its name since then goes back with the rest, or is in the way below.
      if (!(await there(to)) && (await there(from))) await moved(from, to, root)
      failpoint('moves.away')
    }
    for (const { from, to } of moves.in) {
      if (await there(from)) await moved(from, to, root)
      failpoint('moves.in')
    }
  } catch (error) {
    await undo(moves)
    await forget(plan)
    return { undone: error }
  }
  await forget(plan)
  return 'done'
}

const undo = async ({ away, in: into, root }: Moves): Promise<void> => {
  for (const { from, to } of [...into.toReversed(), ...away.toReversed()]) {
    // Nothing was moved through a link; one that stands there since then leads to what is somebody else's.
    if ((await linkBefore(root, from, to)) !== undefined) continue
    if (!(await there(from)) && (await there(to))) await moved(to, from, root)
  }
}

/** Never over something, and below the root never through a link: a name that is taken stops the whole. */
const moved = async (from: string, to: string, root?: string): Promise<void> => {
  if (await there(to)) throw new Error(`${to} is in the way of ${from}`)
  const link = await linkBefore(root, from, to)
  if (link !== undefined) throw new Error(`${link} is reached through a link`)
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  // A folder that would not survive a power cut would take along what was moved into it.
  await flushFolders(to)
  await rename(from, to)
  await flushFolder(dirname(to))
  await flushFolder(dirname(from))
}

/** A folder below the root that is on the way to one of these paths, and is reached through a link. */
const linkBefore = async (root: string | undefined, ...paths: readonly string[]): Promise<string | undefined> => {
  for (const path of paths) {
    if (root === undefined || !contains(root, path)) continue
    let folder = dirname(path)
    while (!(await there(folder))) folder = dirname(folder)
    if ((await realpath(folder).catch(() => undefined)) !== folder) return folder
  }
  return undefined
}

const forget = async (plan: string): Promise<void> => {
  failpoint('moves.over')
  await rm(plan, { force: true })
  await flushFolder(dirname(plan))
}

/**
 * What a group hands over lies in its folder, and what comes back to it in a folder of the daemon's, until it is taken.
 */
const HANDED = 'handed-over'
const RETURNED = 'returned'
/** How the name of a folder ends that was taken in and is being removed; no group has a dot in its name. */
const TAKEN = '.taken'

/** An empty folder for what a group hands over; whatever an earlier one left is gone. */
export const handOverFolder = async (groupFolder: string): Promise<string> => {
  const folder = join(groupFolder, HANDED)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return folder
}

/** Where a group finds what comes back to it. */
export const returnedFolder = (data: string, group: string): string => join(data, RETURNED, group)

/** Lets a group take in what came back to it; until that is whole, the next start begins it again. */
export const takeReturned = async (
  data: string,
  group: string,
  take: (folder: string, names: readonly string[]) => Promise<void>,
): Promise<boolean> => {
  const folder = returnedFolder(data, group)
  const taken = `${folder}${TAKEN}`
  await rm(taken, { recursive: true, force: true })
  if (!(await there(folder))) return false
  await take(folder, (await readdir(folder)).sort())
  failpoint('returned.taken')
  // In one step that lasts: half of it, or all of it over what was done since then, must not be taken in again.
  await rename(folder, taken)
  await flushFolder(dirname(folder))
  await rm(taken, { recursive: true, force: true })
  return true
}
