import '../../support/power.js'
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { FileStore } from '../../../kernel/storage/files.js'
import { endLanding } from '../../../plugins/agents/landing/apply.js'
import { LandingRecords, type LandingRecord } from '../../../plugins/agents/landing/record.js'
import { landRepo } from '../../../plugins/agents/landing/landing.js'
import { Bed, treeOf } from '../../plugins/agents/support.js'
import { cutEverywhere } from '../../support/cuts.js'
import { canCut } from '../../support/power.js'

const options = { skip: canCut ? false : 'this system shows no descriptors as paths' }

interface Tree {
  readonly [path: string]: string
}
/** The state after a cut: the person's files, the staged ones, and the record of the landing. */
interface Left {
  readonly tree: Tree
  readonly waiting: Tree
  readonly record?: LandingRecord
}

const filesOf = (folder: string): Tree =>
  Object.fromEntries(Object.entries(treeOf(folder)).filter(([, what]) => what !== 'folder'))
const waits = (path: string) => basename(path).startsWith('.sandbox-write-')
const same = (one: object, other: object) =>
  JSON.stringify(Object.entries(one).toSorted()) === JSON.stringify(Object.entries(other).toSorted())

/** A branch that changes, adds, removes and links files, and replaces a file by a folder. */
const busyBed = (t: Test): Bed => {
  const bed = new Bed(t, main => {
    mkdirSync(join(main, 'old/deep'), { recursive: true })
    for (const name of ['a', 'b', 'old/one', 'old/deep/two', 'becomes'])
      writeFileSync(join(main, name), `${name}\n`.repeat(2))
  })
  const { copy } = bed
  writeFileSync(join(copy, 'a'), 'agent\n')
  rmSync(join(copy, 'old/deep'), { recursive: true })
  rmSync(join(copy, 'becomes'))
  mkdirSync(join(copy, 'becomes/in'), { recursive: true })
  writeFileSync(join(copy, 'becomes/in/x'), 'x\n')
  mkdirSync(join(copy, 'new/deep'), { recursive: true })
  writeFileSync(join(copy, 'new/deep/y'), 'y\n')
  symlinkSync('a', join(copy, 'link'))
  bed.commit(copy, 'work')
  return bed
}

/** Whether a state is allowed at any moment; `ends`: the trees with which no record may be left. */
const faultless = ({ tree, waiting, record }: Left, before: Tree, after: Tree, ends: readonly Tree[]): boolean => {
  const whole = (path: string) => [before[path], after[path]].includes(tree[path])
  if (!Object.keys({ ...before, ...after, ...tree }).every(whole)) return false
  if (!record) return Object.keys(waiting).length === 0 && ends.some(end => same(tree, end))
  if (record.state === 'staging') return same(tree, before)
  if (record.state === 'applied') return same(tree, after)
  if (record.state === 'undoing') return true
  return record.moves.every(
    ({ path, temporary }) =>
      temporary === undefined
      || (tree[path] ?? waiting[temporary]) === after[path]
      || waiting[temporary] === after[path],
  )
}

interface Case {
  readonly bed: Bed
  readonly before: Tree
  readonly after: Tree
  readonly records: (folder: string) => LandingRecords
}

const caseOf = (t: Test): Case => {
  const bed = busyBed(t)
  return {
    bed,
    before: filesOf(bed.main),
    after: filesOf(bed.copy),
    records: folder => new LandingRecords(new FileStore(join(folder, 'files'))),
  }
}

/** Cuts the power at every step of a landing that ends with one of two trees. */
const cutIn = (t: Test, { bed, before, after, records }: Case, end: 'before' | 'after', work: () => Promise<unknown>) =>
  cutEverywhere<Left>(t, {
    at: bed.folder,
    // Git flushes its own files, and they contain nothing of the person's.
    left: path =>
      basename(path) === '.git'
      || (path.startsWith(bed.folder) && !/^(?:workspace|files)(?:\/|$)/.test(path.slice(bed.folder.length + 1))),
    first: { tree: before, waiting: {} },
    drive: (_, promised) => promised.step({ tree: end === 'after' ? after : before, waiting: {} }, work),
    found: async folder => {
      const [files, [record]] = [
        filesOf(join(folder, 'workspace')),
        existsSync(join(folder, 'files')) ? await records(folder).open() : [],
      ]
      const pick = (wanted: boolean) =>
        Object.fromEntries(Object.entries(files).filter(([path]) => waits(path) === wanted))
      return { tree: pick(false), waiting: pick(true), ...(record && { record }) }
    },
    fits: (found, allowed) =>
      faultless(
        found,
        before,
        after,
        allowed.map(({ tree }) => tree),
      )
      && (allowed.length > 1 || found.record === undefined),
  })

const land = (bed: Bed, records: LandingRecords) =>
  landRepo(
    { ...bed.deps, records },
    { conversation: 'c-1', branch: bed.branch, span: 'outstanding' },
    bed.checkout,
    bed.tip,
  )

/** The same records, with a check before each write. */
const watched = (records: LandingRecords, before: (record: LandingRecord) => Promise<void>): LandingRecords =>
  ({
    open: () => records.open(),
    remove: (record: LandingRecord) => records.remove(record),
    write: async (record: LandingRecord) => {
      await before(record)
      await records.write(record)
    },
  }) as LandingRecords

t.test('a landing', options, async t => {
  const world = caseOf(t)
  const records = world.records(world.bed.folder)
  await cutIn(t, world, 'after', async () => {
    const landed = await land(world.bed, records)
    await records.remove(landed!.record!)
  })
})

t.test('a power cut during a landing that is undone', options, async t => {
  const world = caseOf(t)
  const records = world.records(world.bed.folder)
  const failing = watched(records, async ({ state }) => {
    if (state === 'applied') throw new Error('the record cannot be written')
  })
  await cutIn(t, world, 'before', () => t.rejects(land(world.bed, failing), /cannot be written/))
})

t.test('a power cut during a landing that the next start completes', options, async t => {
  const world = caseOf(t)
  const records = world.records(world.bed.folder)
  // The daemon is killed while its files are staged: the next one does the rest.
  const killed = watched(records, async record => {
    if (record.state !== 'moving') return
    await records.write(record)
    await new Promise(() => {})
  })
  void land(world.bed, killed).catch(() => {})
  while ((await records.open().catch(() => []))[0]?.state !== 'moving')
    await new Promise(resolve => setTimeout(resolve, 5))
  await cutIn(t, world, 'after', async () => {
    const [record] = await records.open()
    t.same(await endLanding(records, record!, world.bed.wall), [])
    await records.remove(record!)
  })
})
