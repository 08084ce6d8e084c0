import fs from 'node:fs/promises'
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { endLanding } from '../../../plugins/agents/landing/apply.js'
import { LandingRecords, type LandingRecord } from '../../../plugins/agents/landing/record.js'
import { landRepo } from '../../../plugins/agents/landing/landing.js'
import { Bed, memoryFiles, treeOf } from './support.js'

/** Called after every step of a landing in the tree, before the next action or comparison. */
let stepped = (): unknown => false

for (const name of ['copyFile', 'unlink', 'rename'] as const) {
  const real = fs[name] as (...args: unknown[]) => Promise<unknown>
  Object.assign(fs, {
    [name]: async (...args: unknown[]) => {
      await real(...args)
      if (args.slice(0, 2).some(value => String(value).startsWith('/proc/self/fd/'))) stepped()
    },
  })
}
syncBuiltinESMExports()

// All in one folder, whose files are landed one after another.
const FILES = { a: 'first a\n', b: 'first b\n', c: 'first c\n', gone: 'first gone\n' }
const PATHS = ['a', 'b', 'gone', 'new'] as const

/** Changes that a person may make to a file during a landing, and the expected result. */
const CHANGES: { readonly [kind: string]: (path: string) => void } = {
  'written anew': path => writeFileSync(path, 'mine\n'),
  'saved as editors do': path => {
    writeFileSync(`${path}~`, 'mine\n')
    rmSync(path, { force: true })
    writeFileSync(path, readFileSync(`${path}~`))
    rmSync(`${path}~`)
  },
  deleted: path => rmSync(path, { force: true }),
  'replaced by a link': path => {
    rmSync(path, { force: true })
    symlinkSync('c', path)
  },
  'replaced by a folder': path => {
    rmSync(path, { force: true })
    mkdirSync(path)
    writeFileSync(join(path, 'mine'), 'mine\n')
  },
}

const bedWith = (t: Test): Bed => {
  const bed = new Bed(t, main => {
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(main, name), text)
  })
  for (const name of ['a', 'b', 'new']) writeFileSync(join(bed.copy, name), `agent ${name}\n`)
  rmSync(join(bed.copy, 'gone'))
  bed.commit(bed.copy, 'work')
  return bed
}

const restore = ({ main }: Bed): void => {
  for (const name of readdirSync(main)) if (name !== '.git') rmSync(join(main, name), { recursive: true })
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(main, name), text)
}

type Tree = ReturnType<typeof treeOf>

/** The files of the person, without staged ones. */
const people = ({ main }: Bed): Tree =>
  Object.fromEntries(Object.entries(treeOf(main)).filter(([path]) => !path.startsWith('.sandbox-write-')))

interface Raced {
  readonly landed: boolean
  readonly states: readonly string[]
  readonly steps: number
  /** The tree just before a person changed a file, and just after it. */
  readonly at?: Tree
  readonly after?: Tree
}

/** Lands while a person changes a file after a step; `fails`: the record cannot be written, so it is undone. */
const race = async (bed: Bed, step: number, change: () => void, fails: boolean): Promise<Raced> => {
  const files = memoryFiles()
  const states: string[] = []
  let steps = 0
  let seen: Pick<Raced, 'at' | 'after'> = {}
  const next = () => {
    if (steps++ !== step) return
    const at = people(bed)
    change()
    seen = { at, after: people(bed) }
  }
  const records = new LandingRecords({
    ...files,
    write: async (name, record) => {
      const { state } = record as LandingRecord
      states.push(state)
      if (state !== 'applied') await files.write(name, record)
      next()
      if (state === 'applied' && fails) throw new Error('the record cannot be written')
      await files.write(name, record)
    },
  })
  stepped = () => states.length > 0 && next()
  const landed = await landRepo(
    { ...bed.deps, records },
    { conversation: 'c-1', branch: bed.branch, span: 'outstanding' },
    bed.checkout,
    bed.tip,
  ).then(
    done => done?.record !== undefined,
    () => false,
  )
  stepped = () => false
  return { landed, states, steps, ...seen }
}

const only = (tree: Tree, path: string, wanted = true) =>
  Object.fromEntries(Object.entries(tree).filter(([name]) => (name === path || name.startsWith(`${path}/`)) === wanted))
const same = (one: Tree, other: Tree): boolean => JSON.stringify(one) === JSON.stringify(other)

t.test(
  'a change by a person between the steps of a landing is kept, and everything else has landed or is unchanged',
  async t => {
    const bed = bedWith(t)
    const [before, after] = [treeOf(bed.main), people({ main: bed.copy } as Bed)]
    const { steps } = await race(bed, Infinity, () => {}, false)
    t.same(treeOf(bed.main), after, 'without a race it lands')
    const faults: string[] = []
    const ends = new Set<string>()
    const kinds = Object.keys(CHANGES)
    let turn = 0
    for (const fails of [false, true]) {
      for (let step = 0; step < steps; step++) {
        for (const path of PATHS) {
          // Every change of every file at every step would take a minute, so they alternate.
          const kind = kinds[turn++ % kinds.length]!
          restore(bed)
          const {
            landed,
            states,
            at,
            after: changed,
          } = await race(bed, step, () => CHANGES[kind]!(join(bed.main, path)), fails)
          const fault = (what: string) =>
            faults.push(
              `${path} ${kind} after step ${step}, ${fails ? 'undone' : 'landing'}, ${states.join(' ')}: ${what}`,
            )
          if (!at || !changed) {
            fault('the step was not reached')
            continue
          }
          const now = treeOf(bed.main)
          const nothing = same(only(at, path), only(changed, path)) && kind === 'deleted'
          ends.add(states.join(' '))
          if (!same(only(now, path), only(nothing ? (landed ? after : before) : changed, path)))
            fault(`found ${JSON.stringify(only(now, path))}`)
          if (!same(only(now, path, false), only(landed ? after : before, path, false)))
            fault(`the others are ${JSON.stringify(now)}`)
          const lands = !fails && (nothing || same(only(at, path), only(after, path)))
          if (landed !== lands) fault(`it ${landed ? 'landed' : 'was refused'}`)
          if (step < 2 && !fails && !nothing && states.length > 1) fault('it was found only in writing')
        }
      }
    }
    t.same(faults.slice(0, 4), [])
    t.same([...ends].sort(), [
      'staging',
      'staging moving applied',
      'staging moving applied undoing',
      'staging moving undoing',
    ])
  },
)

t.test('a change by a person before the next start completes an interrupted landing is kept', async t => {
  const bed = bedWith(t)
  const after = people({ main: bed.copy } as Bed)
  for (const [path, [kind, change]] of (['a', 'gone'] as const).flatMap(path =>
    Object.entries(CHANGES).map(each => [path, each] as const),
  )) {
    restore(bed)
    const files = memoryFiles()
    const [reached, over] = [Promise.withResolvers<LandingRecord>(), Promise.withResolvers<void>()]
    const records = new LandingRecords({
      ...files,
      write: async (_, record) => {
        if ((record as LandingRecord).state !== 'moving') return
        reached.resolve(record as LandingRecord)
        await over.promise
      },
    })
    const landing = landRepo(
      { ...bed.deps, records },
      { conversation: 'c-1', branch: bed.branch, span: 'outstanding' },
      bed.checkout,
      bed.tip,
    )
    const record = await reached.promise
    change(join(bed.main, path))
    const changed = people(bed)
    t.same(
      await endLanding(new LandingRecords(memoryFiles()), record, bed.wall),
      path === 'gone' && /deleted|folder/.test(kind) ? [] : [path],
      `${path} ${kind}`,
    )
    t.same(only(treeOf(bed.main), path), only(changed, path))
    t.same(only(treeOf(bed.main), path, false), only(after, path, false))
    // The killed daemon ends here.
    over.reject(new Error('cut off'))
    await t.rejects(landing, /cut off/)
  }
})
