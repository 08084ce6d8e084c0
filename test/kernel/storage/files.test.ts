import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileStore } from '../../../kernel/storage/files.js'
import { sweepTemporaries } from '../../../sdk/node/files/disk.js'
import { openSeal } from '../../../kernel/storage/seal.js'

t.test('a document is read as it was written, in a file that only its owner can read', async t => {
  const folder = t.testdir()
  const files = new FileStore(folder)
  t.equal(await files.read('kernel/owner'), undefined)
  await files.write('kernel/owner', { email: 'a@b', list: [1] })
  t.same(await files.read('kernel/owner'), { email: 'a@b', list: [1] })
  t.equal(statSync(join(folder, 'kernel/owner.json')).mode & 0o777, 0o600)
  t.equal(statSync(join(folder, 'kernel')).mode & 0o777, 0o700)
  await files.remove('kernel/owner')
  await files.remove('kernel/owner')
  await files.remove('never/was')
  t.equal(await files.read('kernel/owner'), undefined)
})

t.test('of many concurrent writes the last one is kept, and no other file is left', async t => {
  const folder = t.testdir()
  const files = new FileStore(folder)
  await Promise.all(Array.from({ length: 50 }, (_, n) => files.write('a/one', { n })))
  t.same(await files.read('a/one'), { n: 49 })
  t.same(readdirSync(join(folder, 'a')), ['one.json'])
})

t.test('a temporary file that a crash left is ignored', async t => {
  const folder = t.testdir({ a: { '.one.json.tmp': 'half' } })
  const files = new FileStore(folder)
  t.same(await files.list(''), [])
  await files.write('a/one', 1)
  t.same(readdirSync(join(folder, 'a')), ['one.json'])
})

t.test('names are listed by prefix', async t => {
  const files = new FileStore(t.testdir())
  t.same(await files.list('none/'), [])
  for (const name of ['a/x', 'a/xy', 'a/b/x', 'ab/x', 'top']) await files.write(name, 1)
  t.same(await files.list(''), ['a/b/x', 'a/x', 'a/xy', 'ab/x', 'top'])
  t.same(await files.list('a/'), ['a/b/x', 'a/x', 'a/xy'])
  t.same(await files.list('a/x'), ['a/x', 'a/xy'])
  t.same(await files.list('a'), ['a/b/x', 'a/x', 'a/xy', 'ab/x'])
})

t.test('a name that could leave the folder or collide with another file is refused', async t => {
  const files = new FileStore(t.testdir())
  const bad = ['', '.', '..', '../a', 'a/../b', '/a', 'a/', 'a//b', 'a\\b', 'a\0b', '.hidden', 'a.json/b', 'ü']
  for (const name of [...bad, 'a'.repeat(129)]) {
    await t.rejects(files.read(name), { reason: 'invalid' } as never)
    await t.rejects(files.write(name, 1), { reason: 'invalid' } as never)
  }
  for (const prefix of ['../', '..', '/', 'a/../']) await t.rejects(files.list(prefix), { reason: 'invalid' } as never)
  await t.rejects(files.write('a', undefined), /expected a JSON value/)
})

t.test('sealed documents are unreadable, and a changed or moved one or one of another key does not open', async t => {
  const folder = t.testdir()
  const seal = await openSeal(join(folder, 'machine.key'))
  const files = new FileStore(join(folder, 'files'), seal)
  await files.write('kernel/owner', { secret: 'hunter2' })
  t.same(await files.read('kernel/owner'), { secret: 'hunter2' })
  const again = new FileStore(join(folder, 'files'), await openSeal(join(folder, 'machine.key')))
  t.same(await again.read('kernel/owner'), { secret: 'hunter2' })
  const path = join(folder, 'files/kernel/owner.json')
  const sealed = readFileSync(path)
  t.notOk(sealed.includes('hunter2'))
  for (let i = 0; i < sealed.length; i++) {
    const changed = Buffer.from(sealed)
    changed[i] = (changed[i] ?? 0) ^ 1
    writeFileSync(path, changed)
    await t.rejects(files.read('kernel/owner'), /the document kernel\/owner/)
  }
  for (const cut of [0, 5, 20, sealed.length - 1]) {
    writeFileSync(path, sealed.subarray(0, cut))
    await t.rejects(files.read('kernel/owner'), /the document kernel\/owner/)
  }
  writeFileSync(path, sealed)
  const foreign = new FileStore(join(folder, 'files'), await openSeal(join(folder, 'other.key')))
  await t.rejects(foreign.read('kernel/owner'), /another machine key/)
  renameSync(path, join(folder, 'files/kernel/other.json'))
  await t.rejects(files.read('kernel/other'), /kernel\/other does not open/)
})

t.test('concurrent starts create one machine key, and the error of a broken one names it', async t => {
  const folder = t.testdir()
  const key = join(folder, 'data/machine.key')
  const seals = await Promise.all(Array.from({ length: 8 }, () => openSeal(key)))
  const sealed = seals[0]?.seal('a', Buffer.from('text')) ?? Buffer.alloc(0)
  for (const seal of seals) t.equal(seal.open('a', sealed).toString(), 'text')
  t.same(readdirSync(join(folder, 'data')), ['machine.key'])
  t.equal(statSync(key).mode & 0o777, 0o600)
  t.equal(statSync(key).size, 32)
  writeFileSync(key, 'short')
  await t.rejects(openSeal(key), /machine\.key is broken: expected 32 bytes, found 5/)
  mkdirSync(join(folder, 'folder.key'))
  await t.rejects(openSeal(join(folder, 'folder.key')), /cannot be read \(EISDIR\)/)
  t.ok(existsSync(key))
  if (process.getuid?.() === 0) return
  chmodSync(key, 0)
  await t.rejects(openSeal(key), /cannot be read \(EACCES\)/)
})

t.test('leftovers of interrupted writes are removed, but no current writes and no other files', async t => {
  const folder = t.testdir({
    files: { a: { '.old.json.tmp': 'half', 'kept.json': '{}', 'x.tmp': 'mine' } },
    [`machine.key.${spawnSync('true').pid}.0123abcd.tmp`]: 'half',
  })
  const files = new FileStore(join(folder, 'files'), await openSeal(join(folder, 'machine.key')))
  const writing = files.write('a/new', 'x'.repeat(8 * 1024 * 1024))
  while (!existsSync(join(folder, 'files/a/.new.json.tmp'))) await new Promise(resolve => setImmediate(resolve))
  await sweepTemporaries(join(folder, 'files'))
  await writing
  t.same(
    [readdirSync(folder).sort(), readdirSync(join(folder, 'files/a')).sort()],
    [
      ['files', 'machine.key'],
      ['kept.json', 'new.json', 'x.tmp'],
    ],
  )
})
