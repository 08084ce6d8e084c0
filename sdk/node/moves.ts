import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { failpoint } from './failpoint.js'
import { flushFolder, readJson, writeAtomic } from './files.js'
import { codeOf } from './paths.js'

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
}

const there = (path: string): Promise<boolean> => lstat(path).then(() => true, error => {
  if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return false
  throw error
})

/** Writes down moves that the next start carries out: when this returns they happen, whatever comes. */
export const planMoves = (plan: string, { away, in: into }: Omit<Moves, 'version'>): Promise<void> =>
  writeAtomic(plan, JSON.stringify({ version: 1, away, in: into } satisfies Moves), { flush: true })

/** What became of moves that were written down. */
export type Carried = 'none' | 'done' | { readonly undone: unknown }

/**
 * Carries out what was written down, from wherever an earlier start was killed in it; where something stands in the way,
 * everything goes back to where it was.
 */
export const carryOut = async (plan: string): Promise<Carried> => {
  const moves = await readJson<Moves>(plan)
  if (!moves) return 'none'
  if (moves.version !== 1) throw new Error(`${plan}: expected version 1, found ${moves.version}; start the daemon that wrote it`)
  try {
    for (const { from, to } of moves.away) {
      // It was moved already; what has its name since then goes back with the rest, or is in the way below.
      if (!(await there(to)) && (await there(from))) await moved(from, to)
      failpoint('moves.away')
    }
    for (const { from, to } of moves.in) {
      if (await there(from)) await moved(from, to)
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

const undo = async ({ away, in: into }: Moves): Promise<void> => {
  for (const { from, to } of into.toReversed()) if (!(await there(from)) && (await there(to))) await moved(to, from)
  for (const { from, to } of away.toReversed()) if (!(await there(from)) && (await there(to))) await moved(to, from)
}

/** Never over something: a name that is taken stops the whole. */
const moved = async (from: string, to: string): Promise<void> => {
  if (await there(to)) throw new Error(`${to} is in the way of ${from}`)
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  await rename(from, to)
  await flushFolder(dirname(to))
  await flushFolder(dirname(from))
}

const forget = async (plan: string): Promise<void> => {
  failpoint('moves.over')
  await rm(plan, { force: true })
  await flushFolder(dirname(plan))
}

/** What a group hands over lies in its folder, and what comes back to it in a folder of the daemon's, until it is taken. */
const HANDED = 'handed-over'
const RETURNED = 'returned'

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
export const takeReturned = async (data: string, group: string, take: (folder: string, names: readonly string[]) => Promise<void>): Promise<boolean> => {
  const folder = returnedFolder(data, group)
  if (!(await there(folder))) return false
  await take(folder, (await readdir(folder)).sort())
  failpoint('returned.taken')
  await rm(folder, { recursive: true, force: true })
  return true
}
