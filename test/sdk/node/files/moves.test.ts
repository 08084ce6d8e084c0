import { existsSync, mkdirSync, readFileSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { carryOut, handOverFolder, planMoves, returnedFolder, takeReturned } from '../../../../sdk/node/files/moves.js'

const bed = (root: string) => {
  const [old, fresh, before] = ['old', 'fresh', 'before'].map(name => join(root, name)) as [string, string, string]
  for (const [folder, text] of [
    [old, 'old'],
    [fresh, 'fresh'],
  ] as const) {
    mkdirSync(join(folder, 'a'), { recursive: true })
    writeFileSync(join(folder, 'a', 'file'), text)
    writeFileSync(join(folder, 'b'), text)
  }
  const moves = {
    away: ['a', 'b', 'gone'].map(name => ({ from: join(old, name), to: join(before, 'deep', name) })),
    in: ['a', 'b'].map(name => ({ from: join(fresh, name), to: join(old, name) })),
  }
  return { plan: join(root, 'moves.json'), old, fresh, before: join(before, 'deep'), moves }
}

t.test('planned moves are carried out once', async t => {
  const { plan, old, fresh, before, moves } = bed(t.testdir())
  t.equal(await carryOut(plan), 'none')
  await planMoves(plan, moves)
  t.equal(await carryOut(plan), 'done')
  t.same([readFileSync(join(old, 'a/file'), 'utf8'), readFileSync(join(before, 'a/file'), 'utf8')], ['fresh', 'old'])
  t.same([readdirSync(old), readdirSync(fresh), readdirSync(before)], [['a', 'b'], [], ['a', 'b']])
  t.equal(existsSync(plan), false)
  t.equal(await carryOut(plan), 'none')
})

t.test('if a target exists every move is undone', async t => {
  const { plan, old, fresh, before, moves } = bed(t.testdir())
  await planMoves(plan, { ...moves, in: [...moves.in, { from: join(old, 'b'), to: join(old, 'a') }] })
  t.match(await carryOut(plan), { undone: { message: /is in the way/ } })
  t.same(
    [readFileSync(join(old, 'a/file'), 'utf8'), readFileSync(join(fresh, 'a/file'), 'utf8'), readdirSync(before)],
    ['old', 'fresh', []],
  )
  t.equal(existsSync(plan), false)
})

t.test('no move follows a link below the root, and earlier moves are undone', async t => {
  const folder = realpathSync(t.testdir({ work: {}, away: { x: 'theirs' }, fresh: { a: 'a', x: 'new' } }))
  const [plan, work, before] = ['moves.json', 'work', 'work/before'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  symlinkSync(join(folder, 'away'), join(work, 'link'))
  writeFileSync(join(work, 'a'), 'old')
  await planMoves(plan, {
    root: work,
    away: [
      { from: join(work, 'a'), to: join(before, 'a') },
      { from: join(work, 'link/x'), to: join(before, 'x') },
    ],
    in: [
      { from: join(folder, 'fresh/a'), to: join(work, 'a') },
      { from: join(folder, 'fresh/x'), to: join(work, 'link/x') },
    ],
  })
  t.match(await carryOut(plan), { undone: { message: /link is reached through a link/ } })
  t.same(
    ['work/a', 'away/x', 'fresh/a', 'fresh/x'].map(path => readFileSync(join(folder, path), 'utf8')),
    ['old', 'theirs', 'a', 'new'],
  )
  t.same([readdirSync(before), existsSync(plan)], [[], false])
})

t.test('a plan of another version stops the start', async t => {
  const { plan } = bed(t.testdir())
  writeFileSync(plan, '{"version":2}')
  await t.rejects(carryOut(plan), { message: /expected version 1, found 2/ })
  t.equal(existsSync(plan), true)
})

t.test('a group restores its returned files, and begins again if that was interrupted', async t => {
  const data = t.testdir()
  t.equal(await takeReturned(data, 'g', async () => void t.fail('nothing came back')), false)
  mkdirSync(returnedFolder(data, 'g'), { recursive: true })
  writeFileSync(join(returnedFolder(data, 'g'), 'x'), '')
  await t.rejects(
    takeReturned(data, 'g', async () => Promise.reject(new Error('killed'))),
    { message: 'killed' },
  )
  t.equal(await takeReturned(data, 'g', async (_folder, names) => void t.same(names, ['x'])), true)
  t.equal(await takeReturned(data, 'g', async () => void t.fail('twice')), false)
  const folder = await handOverFolder(data)
  writeFileSync(join(folder, 'left'), '')
  t.same(readdirSync(await handOverFolder(data)), [], 'the leftovers of an earlier attempt are removed')
})
