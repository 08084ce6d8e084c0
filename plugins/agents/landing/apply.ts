import { randomBytes } from 'node:crypto'
import { constants, copyFile, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import { Folder, removeEmpty, sameFile, splitPath, stampOf } from './folder.js'
import type { Step } from './plan.js'
import type { LandingRecord, LandingRecords, LandingMove } from './record.js'
import { copyOf, isAttributes } from './main-state.js'
import {
  flushNames,
  folderOf,
  inParent,
  makeFolder,
  makeFolders,
  perFolder,
  placeFile,
  refuseMoved,
  removeFile,
  segmentsIn,
  stampAt,
} from './tree-writes.js'
import { WaitingFolders, waitingName } from './waiting-files.js'

/** What a landing is about, beside its steps. */
export type LandingSubject = Pick<LandingRecord, 'conversation' | 'main' | 'outcome'>

const LINK = '120000'
const PROGRAM = '100755'

/** The new files in the form the working tree has them, with the attributes of HEAD alone. */
const checkOut = async (scratch: ScratchRepo, steps: readonly Step[], zero: string): Promise<string> => {
  const out = await scratch.place('out')
  await copyFile(scratch.index('head'), scratch.index('out'))
  // What says how others are written comes last, so that it is as HEAD has it until then.
  for (const pass of [
    steps.filter(({ path }) => !isAttributes(path)),
    steps.filter(({ path }) => isAttributes(path)),
  ]) {
    const some = pass.filter(({ after }) => after)
    if (some.length === 0) continue
    // A file that becomes a folder, or the other way round: the entry in the way goes first.
    const gone = pass
      .filter(({ after }) => !after)
      .map(({ path }) => `0 ${zero}\t${path}\0`)
      .join('')
    const entries = some.map(({ path, after }) => `${after!.mode} ${after!.id}\t${path}\0`).join('')
    await scratch.git(['update-index', '--replace', '-z', '--index-info'], { index: 'out', input: gone + entries })
    const paths = some.map(({ path }) => `${path}\0`).join('')
    await scratch.git(['checkout-index', '-f', '-q', '-z', '--stdin'], { index: 'out', tree: out, input: paths })
  }
  return out
}

interface Staging {
  readonly moves: LandingMove[]
  readonly made: string[]
}

/**
 * Decides where each new file waits: beside its place, or in the nearest folder there is when its own has to be made
 * last.
 */
const stagingOf = async (main: string, id: string, steps: readonly Step[]): Promise<Staging> => {
  const made = new Set<string>()
  const waits = new Map<string, string>()
  for (const dir of new Set(steps.filter(({ after }) => after).map(({ path }) => folderOf(path)))) {
    const { folder, obstacle } = await Folder.reach(main, segmentsIn(dir))
    await folder?.close()
    waits.set(dir, obstacle ? folderOf(obstacle.at) : dir)
    if (!folder && !obstacle) await noteMissing(main, segmentsIn(dir), made)
  }
  const moves = steps.map(({ path, stamp, after }, at): LandingMove => {
    const dir = after && waits.get(folderOf(path))
    return {
      path,
      stamp,
      ...(dir !== undefined && { temporary: [...segmentsIn(dir), `${waitingName(id)}${at}`].join('/') }),
    }
  })
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

/** The bits a file keeps when its content is replaced: only whether it is a program follows the work. */
const permissionsOf = (stamp: string, mode: string): number | undefined => {
  const before = Number(stamp.split(' ')[0])
  if (mode === LINK || !isFile(before)) return undefined
  const bits = before & 0o777
  return mode === PROGRAM ? bits | ((bits & 0o444) >> 2) : bits & ~0o111
}

const isFile = (mode: number): boolean => (mode & constants.S_IFMT) === constants.S_IFREG

const pathsOf = (moves: readonly LandingMove[]): string[] => moves.map(({ path }) => path)
const waitingOf = (moves: readonly LandingMove[]): string[] => moves.flatMap(({ temporary }) => temporary ?? [])

/** Lets every new file wait under its temporary name. */
const stage = (
  main: string,
  out: string,
  steps: readonly Step[],
  moves: readonly LandingMove[],
  folders: WaitingFolders,
): Promise<void> => {
  const waiting = moves.flatMap(({ path, stamp, temporary }, at) => {
    const { after } = steps[at]!
    return temporary === undefined || !after
      ? []
      : [{ path: temporary, source: join(out, path), permissions: permissionsOf(stamp, after.mode) }]
  })
  return perFolder(main, waiting, async (folder, some) => {
    await folders.hold(folder ?? refuseMoved(some[0]!.path))
    for (const { path, source, permissions } of some) {
      await placeFile(folder ?? refuseMoved(path), splitPath(path).name, source, permissions)
      failpoint('agents.landing.waiting')
    }
  })
}

/** Refuses when anything is no longer as it was read. */
const verify = (main: string, moves: readonly LandingMove[]): Promise<void> =>
  perFolder(main, moves, async (folder, some) => {
    for (const { path, stamp } of some) {
      if ((folder ? stampOf(await folder.stat(splitPath(path).name)) : 'absent') !== stamp) refuseMoved(path)
    }
  })

const dropTemporaries = async (main: string, { moves, made }: Pick<LandingRecord, 'moves' | 'made'>): Promise<void> => {
  for (const { temporary } of moves) {
    // One whose folder was moved at this very moment must not keep the others.
    if (temporary !== undefined && (await stampAt(main, temporary)) !== 'absent')
      await removeFile(main, temporary).catch(() => {})
  }
  for (const path of made.toReversed()) await removeEmpty(main, path)
}

/** Moves one waiting file to its place. */
const putInPlace = async (main: string, { path, temporary, stamp }: LandingMove): Promise<void> => {
  await makeFolders(main, folderOf(path))
  if (stamp === 'folder') await removeEmpty(main, path)
  await inParent(main, temporary!, (from, waiting) =>
    inParent(main, path, (to, name) => rename(from.at(waiting), to.at(name))),
  )
}

/** What was done in the tree, in order, with the stamp of each new file that nobody changed at once. */
interface Done {
  readonly moves: LandingMove[]
  readonly written: Map<string, string>
}

/** Takes away what goes: a file may become a folder, and a folder a file. */
const removeAll = async (main: string, moves: readonly LandingMove[], done: Done): Promise<void> => {
  const going = moves.filter(({ temporary }) => temporary === undefined)
  await perFolder(main, going, async (folder, some) => {
    for (const move of some) {
      const { name } = splitPath(move.path)
      if (!folder || stampOf(await folder.stat(name)) !== move.stamp) refuseMoved(move.path)
      else await unlink(folder.at(name))
      failpoint('agents.landing.unlinked')
      done.moves.push(move)
    }
  })
  const emptied = [...new Set(going.map(({ path }) => folderOf(path)))].sort((one, other) => other.length - one.length)
  for (const dir of emptied) await removeEmpty(main, dir)
}

/** Moves every waiting file to its place. */
const putAllInPlace = async (main: string, moves: readonly LandingMove[], done: Done): Promise<void> => {
  const coming = moves.filter(({ temporary }) => temporary !== undefined)
  for (const dir of new Set(coming.map(({ path }) => folderOf(path)))) await makeFolders(main, dir)
  await perFolder(main, coming, async (folder, some, dir) => {
    for (const move of some) {
      const { path, stamp, temporary } = move
      const { name } = splitPath(path)
      const waited = await stampAt(main, temporary!)
      const now = folder ? stampOf(await folder.stat(name)) : 'absent'
      // A folder of its own that this landing emptied is gone by now.
      if (!folder || (now !== stamp && !(stamp === 'folder' && now === 'absent'))) refuseMoved(path)
      else if (stamp === 'folder' || folderOf(temporary!) !== dir) await putInPlace(main, move)
      else await rename(folder.at(splitPath(temporary!).name), folder.at(name))
      failpoint('agents.landing.renamed')
      done.moves.push(move)
      // What somebody put there since is not this landing's to take back.
      const placed = stampOf(await folder?.stat(name))
      if (sameFile(waited, placed)) done.written.set(path, placed)
    }
  })
}

/** Gives back what was there before, from the copies the plan was made with. */
const undo = async (scratch: ScratchRepo, record: LandingRecord, { moves, written }: Done): Promise<void> => {
  const { main, id } = record
  for (const { path, stamp, temporary } of moves.toReversed()) {
    // A folder made where a file was is removed first.
    for (const below of record.moves) {
      if (temporary === undefined && below.path.startsWith(`${path}/`)) await removeEmpty(main, folderOf(below.path))
    }
    if ((await stampAt(main, path)) !== (temporary === undefined ? 'absent' : written.get(path))) continue
    if (stamp === 'absent' || stamp === 'folder') {
      await removeFile(main, path)
      continue
    }
    const permissions = Number(stamp.split(' ')[0]) & 0o777
    const move = { path, stamp: 'absent', temporary: `${waitingName(id)}undo` }
    await inParent(main, move.temporary, (folder, name) => placeFile(folder, name, copyOf(scratch, path), permissions))
    await putInPlace(main, move)
  }
  await dropTemporaries(main, record)
  await flushNames(main, [...pathsOf(record.moves), ...waitingOf(record.moves)])
}

/**
 * Writes the steps of a landing in the person's working tree: all of them, or none.
 *
 * Every new file first waits beside its place, so that a full disk is found before anything is touched. Each state is
 * written down, so that after a crash the landing is found and ended.
 */
export const applyLanding = async (
  scratch: ScratchRepo,
  records: LandingRecords,
  subject: LandingSubject,
  steps: readonly Step[],
): Promise<LandingRecord> => {
  const { main } = subject
  const id = randomBytes(9).toString('hex')
  const out = await checkOut(scratch, steps, '0'.repeat(steps.find(({ after }) => after)?.after?.id.length ?? 40))
  const { moves, made } = await stagingOf(main, id, steps)
  const staging: LandingRecord = { id, ...subject, state: 'staging', moves, made }
  await records.write(staging)
  failpoint('agents.landing.staging')
  const folders = new WaitingFolders(main, id)
  try {
    return await carryOut({ scratch, records, steps, out, folders }, staging)
  } finally {
    await folders.close()
  }
}

interface Work {
  readonly scratch: ScratchRepo
  readonly records: LandingRecords
  readonly steps: readonly Step[]
  /** Where the new files lie in the form the working tree has them. */
  readonly out: string
  readonly folders: WaitingFolders
}

const carryOut = async (
  { scratch, records, steps, out, folders }: Work,
  staging: LandingRecord,
): Promise<LandingRecord> => {
  const { main, moves, made, id } = staging
  const moving: LandingRecord = { ...staging, state: 'moving' }
  try {
    // The root is where a file waits that is put back.
    await perFolder(main, [{ path: waitingName(id) }], async folder => folder && folders.hold(folder))
    for (const path of made) await makeFolder(main, path)
    await stage(main, out, steps, moves, folders)
    failpoint('agents.landing.staged')
    await verify(main, moves)
    await flushNames(main, waitingOf(moves))
    await records.write(moving)
    failpoint('agents.landing.moving')
  } catch (error) {
    await folders.clear()
    await dropTemporaries(main, staging)
    await records.remove(staging)
    throw error
  }
  const done: Done = { moves: [], written: new Map() }
  try {
    await removeAll(main, moves, done)
    failpoint('agents.landing.cleared')
    await putAllInPlace(main, moves, done)
    failpoint('agents.landing.placed')
    await flushNames(main, pathsOf(moves))
    const applied: LandingRecord = { ...moving, state: 'applied' }
    await records.write(applied)
    failpoint('agents.landing.applied')
    return applied
  } catch (error) {
    // A disk too full to write this down must not keep the tree from being put back.
    await records.write({ ...moving, state: 'undoing' }).catch(() => {})
    await undo(scratch, moving, done).finally(() => folders.clear())
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
  if (record.state === 'applied') return [...(record.left ?? [])]
  if (record.state === 'staging') {
    await dropTemporaries(main, record)
    await records.remove(record)
    return []
  }
  if (record.state === 'undoing') {
    await dropTemporaries(main, record)
    const left = moves.map(({ path }) => path)
    await records.write({ ...record, state: 'applied', left })
    return left
  }
  const left: string[] = []
  for (const move of inOrder(moves)) {
    const { path, temporary } = move
    const stamp = await stampAt(main, path)
    if (temporary === undefined) {
      // A folder stands where a file went: it is one this very landing made.
      if (stamp === move.stamp) await removeFile(main, path)
      else if (stamp !== 'absent' && stamp !== 'folder') left.push(path)
      if (folderOf(path) !== '') await removeEmpty(main, folderOf(path))
      continue
    }
    if ((await stampAt(main, temporary)) === 'absent') {
      // Not in its place either: somebody moved the folder in which it waited.
      if (stamp === move.stamp) left.push(path)
      continue
    }
    if (stamp === move.stamp || (move.stamp === 'folder' && stamp === 'absent')) await putInPlace(main, move)
    else left.push(path)
  }
  await dropTemporaries(main, { moves, made: [] })
  await flushNames(main, pathsOf(moves))
  await records.write({ ...record, state: 'applied', left })
  return left
}

const deepestFirst = (one: LandingMove, other: LandingMove): number =>
  other.path.split('/').length - one.path.split('/').length

/** What goes, before what comes. */
const inOrder = (moves: readonly LandingMove[]): LandingMove[] => [
  ...moves.filter(({ temporary }) => temporary === undefined).toSorted(deepestFirst),
  ...moves.filter(({ temporary }) => temporary !== undefined),
]
