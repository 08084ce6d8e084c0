import { randomBytes } from 'node:crypto'
import { constants, copyFile, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isOn } from '../../../sdk/node/repositories/conversion.js'
import type { FilterWall, ScratchRepo } from '../work/scratch-repo.js'
import { Folder, removeEmpty, sameFile, splitPath, stampOf } from './folder.js'
import type { Step } from './plan.js'
import { keepLineEnds } from './line-ends.js'
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
import { recoverGitSteps, takeGitSteps, undoGitSteps } from './git-steps.js'
import { ignored } from '../../../sdk/index.js'

/** The conversation, checkout and outcome of a landing. */
export type LandingSubject = Pick<LandingRecord, 'conversation' | 'main' | 'outcome' | 'git'>

const LINK = '120000'
const PROGRAM = '100755'

/** Checks the new files out in the form of the working tree, with only the attributes of HEAD. */
const checkOut = async (scratch: ScratchRepo, steps: readonly Step[], zero: string): Promise<string> => {
  const out = await scratch.place('out')
  await copyFile(scratch.index('head'), scratch.index('out'))
  // Attribute files come last, so that the other files are written with those of HEAD.
  for (const pass of [
    steps.filter(({ path }) => !isAttributes(path)),
    steps.filter(({ path }) => isAttributes(path)),
  ]) {
    const some = pass.filter(({ after }) => after)
    if (some.length === 0) continue
    // Removes deleted entries first, since a file may become a folder or the reverse.
    const gone = pass
      .filter(({ after }) => !after)
      .map(({ path }) => `0 ${zero}\t${path}\0`)
      .join('')
    const entries = some.map(({ path, after }) => `${after!.mode} ${after!.id}\t${path}\0`).join('')
    await scratch.git(['update-index', '--replace', '-z', '--index-info'], { index: 'out', input: gone + entries })
    const paths = some.map(({ path }) => path)
    await scratch.convert(['checkout-index', '-f', '-q', '-z', '--stdin'], paths, { index: 'out', tree: out })
  }
  await keepLineEnds(scratch, out, steps)
  return out
}

interface Staging {
  readonly moves: LandingMove[]
  readonly made: string[]
}

/**
 * Decides where each new file is staged: in its folder, or in the nearest existing one if its folder is created last.
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

/** The permissions of a replaced file: kept, except that the execute bits follow the work where git heeds them. */
const permissionsOf = (stamp: string, mode: string, heedsModes: boolean): number | undefined => {
  const before = Number(stamp.split(' ')[0])
  if (mode === LINK || !isFile(before)) return undefined
  const bits = before & 0o777
  if (!heedsModes) return bits
  return mode === PROGRAM ? bits | ((bits & 0o444) >> 2) : bits & ~0o111
}

const isFile = (mode: number): boolean => (mode & constants.S_IFMT) === constants.S_IFREG

const pathsOf = (moves: readonly LandingMove[]): string[] => moves.map(({ path }) => path)
const waitingOf = (moves: readonly LandingMove[]): string[] => moves.flatMap(({ temporary }) => temporary ?? [])

/** Writes every new file under its temporary name. */
const stage = (
  main: string,
  out: string,
  steps: readonly Step[],
  moves: readonly LandingMove[],
  folders: WaitingFolders,
  heedsModes: boolean,
): Promise<void> => {
  const waiting = moves.flatMap(({ path, stamp, temporary }, at) => {
    const { after } = steps[at]!
    return temporary === undefined || !after
      ? []
      : [{ path: temporary, source: join(out, path), permissions: permissionsOf(stamp, after.mode, heedsModes) }]
  })
  return perFolder(main, waiting, async (folder, some) => {
    await folders.hold(folder ?? refuseMoved(some[0]!.path))
    for (const { path, source, permissions } of some) {
      await placeFile(folder ?? refuseMoved(path), splitPath(path).name, source, permissions)
      failpoint('agents.landing.waiting')
    }
  })
}

/** Refuses if any path changed since it was read. */
const verify = (main: string, moves: readonly LandingMove[]): Promise<void> =>
  perFolder(main, moves, async (folder, some) => {
    for (const { path, stamp } of some) {
      if ((folder ? stampOf(await folder.stat(splitPath(path).name)) : 'absent') !== stamp) refuseMoved(path)
    }
  })

const dropTemporaries = async (main: string, { moves, made }: Pick<LandingRecord, 'moves' | 'made'>): Promise<void> => {
  for (const { temporary } of moves) {
    if (temporary !== undefined && (await stampAt(main, temporary)) !== 'absent')
      await removeFile(main, temporary).catch(
        ignored('a folder may have moved meanwhile; the others are still removed'),
      )
  }
  for (const path of made.toReversed()) await removeEmpty(main, path)
}

/** Moves one staged file to its path. */
const putInPlace = async (main: string, { path, temporary, stamp }: LandingMove): Promise<void> => {
  await makeFolders(main, folderOf(path))
  if (stamp === 'folder') await removeEmpty(main, path)
  await inParent(main, temporary!, (from, waiting) =>
    inParent(main, path, (to, name) => rename(from.at(waiting), to.at(name))),
  )
}

/** The moves done in the tree, in order, with the stamp of each new file that was not changed since. */
interface Done {
  readonly moves: LandingMove[]
  readonly written: Map<string, string>
}

/** Removes deleted paths; a file may become a folder, and a folder a file. */
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

/** Moves every staged file to its path. */
const putAllInPlace = async (main: string, moves: readonly LandingMove[], done: Done): Promise<void> => {
  const coming = moves.filter(({ temporary }) => temporary !== undefined)
  for (const dir of new Set(coming.map(({ path }) => folderOf(path)))) await makeFolders(main, dir)
  await perFolder(main, coming, async (folder, some, dir) => {
    for (const move of some) {
      const { path, stamp, temporary } = move
      const { name } = splitPath(path)
      const waited = await stampAt(main, temporary!)
      const now = folder ? stampOf(await folder.stat(name)) : 'absent'
      // A folder that this landing emptied has been removed.
      if (!folder || (now !== stamp && !(stamp === 'folder' && now === 'absent'))) refuseMoved(path)
      else if (stamp === 'folder' || folderOf(temporary!) !== dir) await putInPlace(main, move)
      else await rename(folder.at(splitPath(temporary!).name), folder.at(name))
      failpoint('agents.landing.renamed')
      done.moves.push(move)
      // A file that was changed since is not undone.
      const placed = stampOf(await folder?.stat(name))
      if (sameFile(waited, placed)) done.written.set(path, placed)
    }
  })
}

/** Restores the previous files from the copies that the plan was made with. */
const undo = async (scratch: ScratchRepo, record: LandingRecord, { moves, written }: Done): Promise<void> => {
  const { main, id } = record
  for (const { path, stamp, temporary } of moves.toReversed()) {
    // First removes a folder that replaced a file.
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
 * Applies a landing to the person's working tree: all steps or none.
 *
 * First stages every new file beside its path, so that a full disk is detected before anything changes. Records each
 * state, so that a landing interrupted by a crash is recovered.
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
  /** The folder with the new files in the form of the working tree. */
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
    // Files restored by an undo are staged in the root.
    await perFolder(main, [{ path: waitingName(id) }], async folder => folder && folders.hold(folder))
    for (const path of made) await makeFolder(main, path)
    await stage(main, out, steps, moves, folders, isOn(scratch.conversion.forms.get('core.filemode') ?? 'true'))
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
  const { git } = staging
  let isGitDone = false
  try {
    await removeAll(main, moves, done)
    failpoint('agents.landing.cleared')
    await putAllInPlace(main, moves, done)
    failpoint('agents.landing.placed')
    if (git) await takeGitSteps(main, scratch.personWall, git)
    isGitDone = true
    await flushNames(main, pathsOf(moves))
    const applied: LandingRecord = { ...moving, state: 'applied' }
    await records.write(applied)
    failpoint('agents.landing.applied')
    return applied
  } catch (error) {
    await records.write({ ...moving, state: 'undoing' }).catch(ignored('a full disk must not prevent the undo'))
    if (git && isGitDone) await undoGitSteps(main, scratch.personWall, git)
    await undo(scratch, moving, done).finally(() => folders.clear())
    await records.remove(moving)
    throw error
  }
}

/**
 * Recovers an interrupted landing: undoes it if none of the person's files changed yet, otherwise completes it.
 *
 * Returns the paths that were skipped because they changed meanwhile.
 */
export const endLanding = async (
  records: LandingRecords,
  record: LandingRecord,
  wall: FilterWall,
): Promise<string[]> => {
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
      // A folder in place of a deleted file was made by this landing.
      if (stamp === move.stamp) await removeFile(main, path)
      else if (stamp !== 'absent' && stamp !== 'folder') left.push(path)
      if (folderOf(path) !== '') await removeEmpty(main, folderOf(path))
      continue
    }
    if ((await stampAt(main, temporary)) === 'absent') {
      // The staged file is missing because its folder was moved.
      if (stamp === move.stamp) left.push(path)
      continue
    }
    if (stamp === move.stamp || (move.stamp === 'folder' && stamp === 'absent')) await putInPlace(main, move)
    else left.push(path)
  }
  if (record.git && left.length === 0) await recoverGitSteps(main, wall, record.git)
  await dropTemporaries(main, { moves, made: [] })
  await flushNames(main, pathsOf(moves))
  await records.write({ ...record, state: 'applied', left })
  return left
}

const deepestFirst = (one: LandingMove, other: LandingMove): number =>
  other.path.split('/').length - one.path.split('/').length

/** Deletions before new files. */
const inOrder = (moves: readonly LandingMove[]): LandingMove[] => [
  ...moves.filter(({ temporary }) => temporary === undefined).toSorted(deepestFirst),
  ...moves.filter(({ temporary }) => temporary !== undefined),
]
