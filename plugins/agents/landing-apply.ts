import { randomBytes } from 'node:crypto'
import { chmod, copyFile, constants, lstat, mkdir, open, readlink, rename, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../sdk/index.js'
import { TEMPORARY } from '../../sdk/node/files.js'
import { codeOf } from '../../sdk/node/paths.js'
import type { Bench } from './bench.js'
import { Folder, removeEmpty, splitPath, stampOf } from './folder.js'
import type { Step } from './landing-plan.js'
import type { LandingRecord, LandingRecords, Move } from './landing-record.js'
import { copyOf, isAttributes } from './main-state.js'

/** What a landing is about, beside its steps. */
export type LandingSubject = Pick<LandingRecord, 'conversation' | 'main' | 'outcome'>

const LINK = '120000'
const PROGRAM = '100755'
const PARALLEL = 8

/** Does some work for every item; after a failure no more is begun, and it is told once all that had begun has ended. */
const each = async <T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> => {
  const left = items.values()
  const failures: unknown[] = []
  await Promise.all(Array.from({ length: PARALLEL }, async () => {
    for (const item of left) {
      if (failures.length > 0) return
      await work(item).catch(error => failures.push(error))
    }
  }))
  if (failures.length > 0) throw failures[0]
}

/** Runs work in the folder of a path; refuses when it cannot be entered. */
const inFolder = async <T>(main: string, path: string, work: (folder: Folder, name: string) => Promise<T>): Promise<T> => {
  const { segments, name } = splitPath(path)
  const { folder } = await Folder.reach(main, segments)
  if (!folder) return moved(path)
  try {
    return await work(folder, name)
  } finally {
    await folder.close()
  }
}

const moved = (path: string): never =>
  refuse('conflict', `${path} changed while the work was landing, so nothing was written: land again`)

/** The new files in the form the working tree has them, with the attributes of HEAD alone. */
const checkOut = async (bench: Bench, steps: readonly Step[], zero: string): Promise<string> => {
  const out = await bench.place('out')
  await copyFile(bench.index('head'), bench.index('out'))
  // What says how others are written comes last, so that it is as HEAD has it until then.
  for (const pass of [steps.filter(({ path }) => !isAttributes(path)), steps.filter(({ path }) => isAttributes(path))]) {
    const some = pass.filter(({ after }) => after)
    if (some.length === 0) continue
    // A file that becomes a folder, or the other way round: the entry in the way goes first.
    const gone = pass.filter(({ after }) => !after).map(({ path }) => `0 ${zero}\t${path}\0`).join('')
    const entries = some.map(({ path, after }) => `${after!.mode} ${after!.id}\t${path}\0`).join('')
    await bench.git(['update-index', '--replace', '-z', '--index-info'], { index: 'out', input: gone + entries })
    await bench.git(['checkout-index', '-f', '-q', '-z', '--stdin'], { index: 'out', tree: out, input: some.map(({ path }) => `${path}\0`).join('') })
  }
  return out
}

interface Staging {
  readonly moves: Move[]
  readonly made: string[]
}

/** Decides where each new file waits: beside its place, or in the nearest folder there is when its own has to be made last. */
const stagingOf = async (main: string, id: string, steps: readonly Step[]): Promise<Staging> => {
  const made = new Set<string>()
  const moves: Move[] = []
  for (const [at, { path, stamp, after }] of steps.entries()) {
    if (!after) {
      moves.push({ path, stamp })
      continue
    }
    let segments = splitPath(path).segments
    const { folder, obstacle } = await Folder.reach(main, segments)
    await folder?.close()
    if (obstacle) segments = splitPath(obstacle.at).segments
    else if (!folder) await noteMissing(main, segments, made)
    moves.push({ path, stamp, temporary: [...segments, `${TEMPORARY}${id}-${at}`].join('/') })
  }
  return { moves, made: [...made] }
}

const noteMissing = async (main: string, segments: readonly string[], made: Set<string>): Promise<void> => {
  for (let depth = 1; depth <= segments.length; depth++) {
    const path = segments.slice(0, depth).join('/')
    if (made.has(path)) continue
    const { folder } = await Folder.reach(main, segments.slice(0, depth))
    if (folder) await folder.close()
    else made.add(path)
  }
}

const makeFolder = (main: string, path: string): Promise<void> =>
  inFolder(main, path, async (folder, name) => {
    await mkdir(folder.at(name)).catch(error => {
      if (codeOf(error) !== 'EEXIST') throw error
    })
  })

/** Puts a file or link under a new name, with its bytes on the disk. */
const place = async (folder: Folder, name: string, source: string, permissions: number | undefined): Promise<void> => {
  const target = folder.at(name)
  const stat = await lstat(source)
  if (stat.isSymbolicLink()) return symlink(await readlink(source, { encoding: 'buffer' }), target)
  await copyFile(source, target, constants.COPYFILE_EXCL)
  await chmod(target, permissions ?? stat.mode & 0o777)
  const handle = await open(target, 'r')
  await handle.datasync().finally(() => handle.close())
}

/** The bits a file keeps when its content is replaced: only whether it is a program follows the work. */
const permissionsOf = (stat: { mode: bigint; isFile(): boolean } | undefined, mode: string): number | undefined => {
  if (!stat?.isFile()) return undefined
  const bits = Number(stat.mode & 0o777n)
  return mode === PROGRAM ? bits | ((bits & 0o444) >> 2) : bits & ~0o111
}

const stage = async (main: string, out: string, step: Step, { path, temporary }: Move): Promise<void> => {
  if (!step.after || temporary === undefined) return
  const { mode } = step.after
  const stat = step.stamp === 'absent' ? undefined : await inFolder(main, path, (folder, name) => folder.stat(name))
  const permissions = mode === LINK ? undefined : permissionsOf(stat, mode)
  await inFolder(main, temporary, (folder, name) => place(folder, name, join(out, path), permissions))
}

const stampAt = async (main: string, path: string): Promise<string> => {
  const { segments, name } = splitPath(path)
  const { folder } = await Folder.reach(main, segments)
  if (!folder) return 'absent'
  return folder.stat(name).then(stampOf).finally(() => folder.close())
}

const removeFile = (main: string, path: string): Promise<void> =>
  inFolder(main, path, (folder, name) => unlink(folder.at(name)))

const dropTemporaries = async (main: string, { moves, made }: Pick<LandingRecord, 'moves' | 'made'>): Promise<void> => {
  for (const { temporary } of moves) {
    if (temporary !== undefined && await stampAt(main, temporary) !== 'absent') await removeFile(main, temporary)
  }
  for (const path of made.toReversed()) await removeEmpty(main, path)
}

/** Moves one waiting file to its place. */
const putInPlace = async (main: string, { path, temporary, stamp }: Move): Promise<void> => {
  const { segments } = splitPath(path)
  for (let depth = 1; depth <= segments.length; depth++) {
    const { folder } = await Folder.reach(main, segments.slice(0, depth))
    if (folder) await folder.close()
    else await makeFolder(main, segments.slice(0, depth).join('/'))
  }
  if (stamp === 'folder') await removeEmpty(main, path)
  await inFolder(main, temporary!, (from, waiting) =>
    inFolder(main, path, (to, name) => rename(from.at(waiting), to.at(name))))
}

const deepestFirst = (one: Move, other: Move): number => other.path.split('/').length - one.path.split('/').length

/** What goes, before what comes: a file may become a folder, and a folder a file. */
const inOrder = (moves: readonly Move[]): Move[] => [
  ...moves.filter(({ temporary }) => temporary === undefined).toSorted(deepestFirst),
  ...moves.filter(({ temporary }) => temporary !== undefined),
]

const act = async (main: string, move: Move): Promise<void> => {
  if (move.temporary !== undefined) return putInPlace(main, move)
  await removeFile(main, move.path)
  const above = splitPath(move.path).segments.join('/')
  if (above !== '') await removeEmpty(main, above)
}

/** Gives back what was there before, from the copies the plan was made with. */
const undo = async (bench: Bench, record: LandingRecord, done: readonly Move[], written: ReadonlyMap<string, string>): Promise<void> => {
  const { main, id } = record
  for (const { path, stamp, temporary } of done.toReversed()) {
    // Folders made where a file was give its place back.
    for (const below of record.moves) {
      if (temporary === undefined && below.path.startsWith(`${path}/`)) await removeEmpty(main, splitPath(below.path).segments.join('/'))
    }
    if (await stampAt(main, path) !== (temporary === undefined ? 'absent' : written.get(path))) continue
    if (temporary !== undefined) await removeFile(main, path)
    if (stamp === 'absent' || stamp === 'folder') continue
    const permissions = Number(stamp.split(' ')[0]) & 0o777
    const move = { path, stamp: 'absent', temporary: `${TEMPORARY}${id}-undo` }
    await inFolder(main, move.temporary, (folder, name) => place(folder, name, copyOf(bench, path), permissions))
    await putInPlace(main, move)
  }
  await dropTemporaries(main, record)
}

/**
 * Writes the steps of a landing in the person's working tree: all of them, or none.
 *
 * Every new file first waits beside its place, so that a full disk is found before anything is touched. Each state is
 * written down, so that after a crash the landing is found and ended.
 */
export const applyLanding = async (
  bench: Bench, records: LandingRecords, subject: LandingSubject, steps: readonly Step[],
): Promise<LandingRecord> => {
  const { main } = subject
  const id = randomBytes(9).toString('hex')
  const out = await checkOut(bench, steps, '0'.repeat(steps.find(({ after }) => after)?.after?.id.length ?? 40))
  const { moves, made } = await stagingOf(main, id, steps)
  const staging: LandingRecord = { id, ...subject, state: 'staging', moves, made }
  await records.write(staging)
  const moving: LandingRecord = { ...staging, state: 'moving' }
  try {
    for (const path of made) await makeFolder(main, path)
    await each(steps.map((step, at) => [step, moves[at]!] as const), ([step, move]) => stage(main, out, step, move))
    for (const { path, stamp } of moves) if (await stampAt(main, path) !== stamp) moved(path)
    await records.write(moving)
  } catch (error) {
    await dropTemporaries(main, staging)
    await records.remove(staging)
    throw error
  }
  const done: Move[] = []
  const written = new Map<string, string>()
  try {
    for (const move of inOrder(moves)) {
      const stamp = await stampAt(main, move.path)
      // A folder of its own that this landing emptied is gone by now.
      if (stamp !== move.stamp && !(move.stamp === 'folder' && stamp === 'absent')) moved(move.path)
      await act(main, move)
      done.push(move)
      if (move.temporary !== undefined) written.set(move.path, await stampAt(main, move.path))
    }
    const applied: LandingRecord = { ...moving, state: 'applied' }
    await records.write(applied)
    return applied
  } catch (error) {
    await undo(bench, moving, done, written)
    await records.remove(moving)
    throw error
  }
}

/**
 * Brings a landing that was cut off to an end: undone when nothing of the person's was touched yet, else completed.
 *
 * Answers the paths that somebody changed meanwhile and that were therefore left alone.
 */
export const endLanding = async (records: LandingRecords, record: LandingRecord): Promise<string[]> => {
  const { main, moves } = record
  if (record.state === 'applied') return []
  if (record.state === 'staging') {
    await dropTemporaries(main, record)
    await records.remove(record)
    return []
  }
  const left: string[] = []
  for (const move of inOrder(moves)) {
    const waits = move.temporary === undefined || await stampAt(main, move.temporary) !== 'absent'
    const stamp = await stampAt(main, move.path)
    // A folder stands where a file went: it is one this very landing made.
    if (move.temporary === undefined && (stamp === 'absent' || stamp === 'folder')) {
      const above = splitPath(move.path).segments.join('/')
      if (above !== '') await removeEmpty(main, above)
      continue
    }
    if (!waits) continue
    if (stamp === move.stamp || (move.stamp === 'folder' && stamp === 'absent')) await act(main, move)
    else left.push(move.path)
  }
  await dropTemporaries(main, { moves, made: [] })
  await records.write({ ...record, state: 'applied' })
  return left
}
