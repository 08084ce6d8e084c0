import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LandingRecords, type LandingRecord } from '../../../plugins/agents/landing/record.js'
import { landRepo } from '../../../plugins/agents/landing/landing.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { Bed, inGit, memoryFiles } from './support.js'

/** The staged files anywhere below a folder. */
const waiting = (folder: string): string[] =>
  (readdirSync(folder, { recursive: true }) as string[]).filter(name => name.includes('.sandbox-write-'))

const bedWith = (t: Test): Bed => {
  const bed = new Bed(t, main => {
    mkdirSync(join(main, 'src/deep'), { recursive: true })
    for (const name of ['top.txt', 'src/a.txt', 'src/deep/b.txt']) writeFileSync(join(main, name), 'first\n')
  })
  for (const name of ['top.txt', 'src/a.txt', 'src/deep/b.txt', 'src/deep/new.txt'])
    writeFileSync(join(bed.copy, name), 'agent\n')
  rmSync(join(bed.copy, 'src/a.txt'))
  bed.commit(bed.copy, 'work')
  return bed
}

/** Changes that a person may make to the folder of staged files. */
const RACES: readonly (readonly [what: string, race: (bed: Bed) => void])[] = [
  ['moved away', ({ main }) => renameSync(join(main, 'src'), join(main, 'elsewhere'))],
  ['moved out of the workspace', ({ main, folder }) => renameSync(join(main, 'src'), join(folder, 'elsewhere'))],
  [
    'moved, with a link in its place',
    ({ main, folder }) => {
      renameSync(join(main, 'src'), join(main, 'elsewhere'))
      mkdirSync(join(folder, 'theirs'))
      symlinkSync(join(folder, 'theirs'), join(main, 'src'))
    },
  ],
  [
    'moved, with a file in its place',
    ({ main }) => {
      renameSync(join(main, 'src'), join(main, 'elsewhere'))
      writeFileSync(join(main, 'src'), '')
    },
  ],
  ['made a repository', ({ main }) => inGit(join(main, 'src'), 'init', '-q')],
  ['deleted', ({ main }) => rmSync(join(main, 'src'), { recursive: true })],
]

t.test('after any change of the folder of staged files, a failed landing leaves none of them', async t => {
  for (const at of ['written', 'refused'] as const) {
    for (const [what, race] of RACES) {
      await t.test(`${what}, ${at}`, async t => {
        const bed = bedWith(t)
        const files = memoryFiles()
        let most = 0
        const records = new LandingRecords({
          ...files,
          write: async (name, record) => {
            if ((record as LandingRecord).state === 'moving') {
              most = waiting(bed.folder).length
              race(bed)
              if (at === 'refused') throw new Error('the record cannot be written')
            }
            await files.write(name, record)
          },
        })
        const landed = landRepo(
          { ...bed.deps, records },
          { conversation: 'c-1', branch: bed.branch, span: 'outstanding' },
          bed.checkout,
          bed.tip,
        )
        await t.rejects(landed)
        t.equal(most, 3, 'files waited')
        t.same(waiting(bed.folder), [])
        if (at === 'refused') t.same(await records.open(), [])
      })
    }
  }
})

t.test(
  'concurrent landings of several daemons, while a person moves the target folder, leave no staged files',
  async t => {
    const bed = bedWith(t)
    const copies = Array.from({ length: 3 }, (_, at) => {
      const [copy, branch] = [join(bed.folder, `copy-${at}`), `agent/r-${at}`]
      inGit(bed.main, 'worktree', 'add', '-q', '-b', branch, copy)
      return { copy, branch, at }
    })
    mkdirSync(join(bed.folder, 'theirs'))
    writeFileSync(join(bed.folder, 'go'), '')
    const moves =
      'mv workspace/src workspace/away; ln -s ../theirs workspace/src; rm workspace/src; mv workspace/away '
      + 'workspace/src'
    const racer = spawn('sh', ['-c', `while [ -e go ]; do ${moves}; done 2>/dev/null`], {
      cwd: bed.folder,
      stdio: 'ignore',
    })
    const ended = once(racer, 'exit')
    const outcomes = { landed: 0, refused: 0 }
    for (let round = 0; round < 12; round++) {
      for (const { copy, at } of copies) {
        mkdirSync(join(copy, 'src/deep'), { recursive: true })
        for (let nth = 0; nth < 20; nth++) writeFileSync(join(copy, `src/deep/${at}-${nth}.txt`), `${round}\n`)
        bed.commit(copy, `round ${round}`)
      }
      await Promise.all(
        copies.map(async ({ copy, branch, at }) => {
          const tip = inGit(copy, 'rev-parse', 'HEAD').trim()
          const deps = { ...bed.deps, locks: new KeyedMutex(), records: new LandingRecords(memoryFiles()) }
          await landRepo(
            deps,
            { conversation: `r-${at}`, branch, span: 'outstanding' },
            { ...bed.repo, main: bed.main, copy },
            tip,
          ).then(
            () => outcomes.landed++,
            () => outcomes.refused++,
          )
        }),
      )
    }
    rmSync(join(bed.folder, 'go'))
    await ended
    t.equal(outcomes.landed + outcomes.refused, 36, JSON.stringify(outcomes))
    t.same(waiting(bed.folder), [])
    t.same(readdirSync(join(bed.folder, 'theirs')), [])
  },
)
