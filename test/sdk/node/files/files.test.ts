import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { copyPlain, readJson, readPlain, writeAtomic } from '../../../../sdk/node/files/files.js'

t.test('a write replaces the whole file with the given permission bits', async t => {
  const folder = t.testdir({ a: 'old and longer' })
  await writeAtomic(join(folder, 'a'), 'new', { mode: 0o644, flush: true })
  t.equal(readFileSync(join(folder, 'a'), 'utf8'), 'new')
  t.equal(statSync(join(folder, 'a')).mode & 0o777, 0o644)
  await writeAtomic(join(folder, 'b'), Buffer.from([0, 255]))
  t.equal(statSync(join(folder, 'b')).mode & 0o777, 0o600)
  t.same(readFileSync(join(folder, 'b')), Buffer.from([0, 255]))
})

t.test('a write that fails leaves no temporary file', async t => {
  const folder = t.testdir({})
  mkdirSync(join(folder, 'taken/x'), { recursive: true })
  await t.rejects(writeAtomic(join(folder, 'taken'), 'x'))
  await t.rejects(writeAtomic(join(folder, 'none/x'), 'x'), { code: 'ENOENT' })
  t.same(readdirSync(folder), ['taken'])
})

t.test('after twenty concurrent writers the file has the text of one', async t => {
  const folder = t.testdir({})
  const texts = Array.from({ length: 20 }, (_, i) => String(i).repeat(1000))
  await Promise.all(texts.map(text => writeAtomic(join(folder, 'a'), text)))
  t.ok(texts.includes(readFileSync(join(folder, 'a'), 'utf8')))
  t.same(readdirSync(folder), ['a'])
})

t.test('a JSON file is read; a missing one is undefined; the error of a torn one names it', async t => {
  const folder = t.testdir({ good: '{"a":1}', torn: '{"a":' })
  t.same(await readJson(join(folder, 'good')), { a: 1 })
  t.equal(await readJson(join(folder, 'none')), undefined)
  await t.rejects(readJson(join(folder, 'torn')), { message: /torn does not hold JSON/ })
  writeFileSync(join(folder, 'good'), '2')
  t.equal(await readJson(join(folder, 'good')), 2)
})

t.test('only plain files of limited size are read or copied, and a FIFO does not block', async t => {
  const root = t.testdir({ plain: 'text', folder: {}, large: 'x'.repeat(100) })
  execFileSync('mkfifo', [join(root, 'pipe')])
  t.equal(readPlain(join(root, 'plain')), 'text')
  t.equal(readPlain(join(root, 'large'), 99), undefined)
  for (const name of ['pipe', 'folder', 'none']) {
    t.equal(readPlain(join(root, name)), undefined, name)
    t.equal(await copyPlain(join(root, name), join(root, 'copy')), false, name)
  }
  t.equal(await copyPlain(join(root, 'plain'), join(root, 'copy')), true)
  t.equal(readPlain(join(root, 'copy')), 'text')
})
