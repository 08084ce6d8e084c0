import { randomBytes } from 'node:crypto'
import { chmod, copyFile, constants, lstat, mkdir, open, readlink, rename, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import { Folder, removeEmpty, sameFile, splitPath, stampOf } from './folder.js'
import type { Step } from './plan.js'
import type { LandingRecord, LandingRecords, LandingMove } from './record.js'
import { copyOf, isAttributes } from './main-state.js'
import { WaitingFolders, waitingName } from './waiting-files.js'

/** What a landing is about, beside its steps. */
export type LandingSubject = Pick<LandingRecord, 'conversation' | 'main' | 'outcome'>

const LINK = '120000'
const PROGRAM = '100755'
const PARALLEL = 8

/**
 * Does some work for every item; after a failure no more is begun, and it is told once all that had begun has ended.
 */
const each = async <T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> => {
  const left = items.values()
  const failures: unknown[] = []
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (const item of left) {
        if (failures.length > 0) return
        await work(item).catch(error => failures.push(error))
      }
    }),
  )
  if (failures.length > 0) throw failures[0]
}

/** Runs work in the folder of a path; refuses when it cannot be entered. */
const inFolder = async <T>(
  main: string,
  path: string,
  work: (folder: Folder, name: string) => Promise<T>,
): Promise<T> => {
  const { segments, name } = splitPath(path)
  const { folder } = await Folder.reach(main, segments)
  if (!folder) return moved(path)
  try {
    return await work(folder, name)
  } finally {
    await folder.close()
  }
}

/**
 * Runs work for every folder that holds some of the paths, each opened once; no folder: it is not there to be entered.
 */
const perFolder = <T extends { readonly path: string }>(
  main: string,
  items: readonly T[],
  work: (folder: Folder | undefined, items: readonly T[], dir: string) => Promise<void>,
): Promise<void> =>
  each([...Map.groupBy(items, ({ path }) => folderOf(path))], async ([dir, some]) => {
    const { folder } = await Folder.reach(main, segmentsIn(dir))
    try {
      await work(folder, some, dir)
    } finally {
      await folder?.close()
    }
  })

const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))
const segmentsIn = (dir: string): string[] => (dir === '' ? [] : dir.split('/'))

const moved = (path: string): never =>
  refuse('conflict', `${path} changed while the work was landing, so nothing was written: land again`)

/** The new files in the form the working tree has them, with the attributes of HEAD alone. */
const checkOut = async (bench: ScratchRepo, steps: readonly Step[], zero: string): Promise<string> => {
  const out = await bench.place('out')
  await copyFile(bench.index('head'), bench.index('out'))
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
    await bench.git(['update-index', '--replace', '-z', '--index-info'], { index: 'out', input: gone + entries })
    const paths = some.map(({ path }) => `${path}\0`).join('')
    await bench.git(['checkout-index', '-f', '-q', '-z', '--stdin'], { index: 'out', tree: out, input: paths })
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

/** Makes a folder and those above it. */
const makeFolders = async (main: string, dir: string): Promise<void> => {
  const { folder } = await Folder.reach(main, segmentsIn(dir))
  if (folder) return folder.close()
  await makeFolders(main, folderOf(dir))
  await makeFolder(main, dir)
}

const makeFolder = (main: string, path: string): Promise<void> =>
  inFolder(main, path, async (folder, name) => {
    await mkdir(folder.at(name)).catch(error => {
      if (codeOf(error) !== 'EEXIST') throw error
    })
    // A folder that would not survive a power cut would take along what is moved into it.
    await folder.flush()
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
const permissionsOf = (stamp: string, mode: string): number | undefined => {
  const before = Number(stamp.split(' ')[0])
  if (mode === LINK || !isFile(before)) return undefined
  const bits = before & 0o777
  return mode === PROGRAM ? bits | ((bits & 0o444) >> 2) : bits & ~0o111
}

const isFile = (mode: number): boolean => (mode & constants.S_IFMT) === constants.S_IFREG

/** Makes the names of paths, and of the folders on the way to them, survive a power cut. */
const flushNames = (main: string, paths: readonly string[]): Promise<void> => {
  const names = new Set<string>()
  for (const path of paths) for (let at = path; at !== ''; at = folderOf(at)) names.add(at)
  return perFolder(
    main,
    [...names].map(path => ({ path })),
    async folder => folder?.flush(),
  )
}

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
    await folders.hold(folder ?? moved(some[0]!.path))
    for (const { path, source, permissions } of some) {
      await place(folder ?? moved(path), splitPath(path).name, source, permissions)
      failpoint('agents.landing.waiting')
    }
  })
}

/** Refuses when anything is no longer as it was read. */
const verify = (main: string, moves: readonly LandingMove[]): Promise<void> =>
  perFolder(main, moves, async (folder, some) => {
    for (const { path, stamp } of some) {
      if ((folder ? stampOf(await folder.stat(splitPath(path).name)) : 'absent') !== stamp) moved(path)
    }
  })

const stampAt = async (main: string, path: string): Promise<string> => {
  const { segments, name } = splitPath(path)
  const { folder } = await Folder.reach(main, segments)
  if (!folder) return 'absent'
  return folder
    .stat(name)
    .then(stampOf)
    .finally(() => folder.close())
}

const removeFile = (main: string, path: string): Promise<void> =>
  inFolder(main, path, (folder, name) => unlink(folder.at(name)))

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
  await inFolder(main, temporary!, (from, waiting) =>
    inFolder(main, path, (to, name) => rename(from.at(waiting), to.at(name))),
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
      if (!folder || stampOf(await folder.stat(name)) !== move.stamp) moved(move.path)
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
      if (!folder || (now !== stamp && !(stamp === 'folder' && now === 'absent'))) moved(path)
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
const undo = async (bench: ScratchRepo, record: LandingRecord, { moves, written }: Done): Promise<void> => {
  const { main, id } = record
  for (const { path, stamp, temporary } of moves.toReversed()) {
    // Folders made where a file was give its place back.
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
    await inFolder(main, move.temporary, (folder, name) => place(folder, name, copyOf(bench, path), permissions))
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
  bench: ScratchRepo,
  records: LandingRecords,
  subject: LandingSubject,
  steps: readonly Step[],
): Promise<LandingRecord> => {
  const { main } = subject
  const id = randomBytes(9).toString('hex')
  const out = await checkOut(bench, steps, '0'.repeat(steps.find(({ after }) => after)?.after?.id.length ?? 40))
  const { moves, made } = await stagingOf(main, id, steps)
  const staging: LandingRecord = { id, ...subject, state: 'staging', moves, made }
  await records.write(staging)
  failpoint('agents.landing.staging')
  const folders = new WaitingFolders(main, id)
  try {
    return await carryOut({ bench, records, steps, out, folders }, staging)
  } finally {
    await folders.close()
  }
}

interface Work {
  readonly bench: ScratchRepo
  readonly records: LandingRecords
  readonly steps: readonly Step[]
  /** Where the new files lie in the form the working tree has them. */
  readonly out: string
  readonly folders: WaitingFolders
}

const carryOut = async (
  { bench, records, steps, out, folders }: Work,
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
    await undo(bench, moving, done).finally(() => folders.clear())
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
