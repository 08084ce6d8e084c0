import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isLive, RotatingFile } from '../../../../sdk/node/logs/rotating-file.js'

const lines = (path: string): string[] => readFileSync(path, 'utf8').split('\n').filter(Boolean)

t.test('lines are in the file in order, and a new writer appends', async t => {
  const path = join(t.testdir(), 'deep', 'a.log')
  const file = new RotatingFile(path)
  for (let n = 0; n < 100; n++) file.write(`${n}\n`)
  t.notOk(existsSync(path), 'writing does not wait for the disk')
  await file.flush()
  t.ok(isLive(path))
  await file.close()
  t.notOk(isLive(path))
  const again = new RotatingFile(path)
  again.write('100\n')
  await again.close()
  t.same(
    lines(path),
    Array.from({ length: 101 }, (_, n) => String(n)),
  )
})

t.test('a full file is rotated, and two older ones are kept', async t => {
  const folder = t.testdir()
  const path = join(folder, 'a.log')
  const file = new RotatingFile(path, { most: 100 })
  for (let n = 0; n < 50; n++) {
    file.write(`${String(n).padStart(9, '0')}\n`)
    await file.flush()
  }
  await file.close()
  t.same(readdirSync(folder).sort(), ['a.log', 'a.log.1', 'a.log.2'])
  t.same(
    [...lines(`${path}.2`), ...lines(`${path}.1`), ...lines(path)].map(Number),
    Array.from({ length: 30 }, (_, n) => n + 20),
  )
})

t.test('lines that cannot be written are dropped and counted, and a later line reports the number', async t => {
  const folder = t.testdir({ closed: 'no folder' })
  const path = join(folder, 'closed', 'a.log')
  const file = new RotatingFile(path)
  file.write('one\n')
  await file.flush()
  file.write('two\nthree\n')
  await file.flush()
  rmSync(join(folder, 'closed'))
  file.write('four\n')
  await file.close()
  const [notice, four] = lines(path)
  t.match(JSON.parse(notice!), { level: 'warn', message: 'lines of this log were lost', lines: 3 })
  t.equal(four, 'four')
})

t.test('a full disk and a flood of lines cause neither errors nor an unlimited buffer', async t => {
  const full = new RotatingFile('/dev/full')
  for (let n = 0; n < 1000; n++) full.write(`${n}\n`)
  await full.close()
  const path = join(t.testdir(), 'a.log')
  const file = new RotatingFile(path, { backlog: 50 })
  for (let n = 0; n < 100; n++) file.write('123456789\n')
  await file.flush()
  file.write('last\n')
  await file.close()
  t.equal(lines(path).length, 5 + 1 + 1)
  t.match(JSON.parse(lines(path).find(line => line.startsWith('{'))!), { lines: 95 })
})

t.test('a link at the path of a log is not followed', async t => {
  const folder = t.testdir({ other: 'as it was' })
  symlinkSync(join(folder, 'other'), join(folder, 'a.log'))
  const file = new RotatingFile(join(folder, 'a.log'))
  file.write('words\n')
  await file.close()
  t.equal(readFileSync(join(folder, 'other'), 'utf8'), 'as it was')
  mkdirSync(join(folder, 'b.log'))
  const blocked = new RotatingFile(join(folder, 'b.log'))
  blocked.write('words\n')
  await blocked.close()
})
