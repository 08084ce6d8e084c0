import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { contains, inside } from '../../../../sdk/node/files/paths.js'
import { Refusal } from '../../../../sdk/refusal.js'

const reasonOf = (promise: Promise<unknown>) =>
  promise.then(
    value => `answered ${String(value)}`,
    error => (error instanceof Refusal ? error.reason : `threw ${String(error)}`),
  )

const place = (t: Test) => {
  const top = realpathSync(t.testdir({ root: { 'a.txt': 'a', dir: { 'b ü.txt': 'b' } }, beside: { secret: 's' } }))
  const root = join(top, 'root')
  symlinkSync('dir', join(root, 'in'))
  symlinkSync('../beside', join(root, 'out'))
  symlinkSync('../beside/new', join(root, 'dangling'))
  symlinkSync('loop', join(root, 'loop'))
  return { top, root }
}

t.test('a path inside resolves to the real path', async t => {
  const { root } = place(t)
  t.equal(await inside(root, 'a.txt'), join(root, 'a.txt'))
  t.equal(await inside(root, 'in/b ü.txt'), join(root, 'dir/b ü.txt'))
  t.equal(await inside(root, 'dir/'), join(root, 'dir'))
})

t.test('a path that is not a workspace path is invalid', async t => {
  const { root } = place(t)
  const bad = [
    '',
    '/',
    '/etc/passwd',
    '..',
    '../beside',
    'dir/../a.txt',
    './a.txt',
    '.',
    'a//b',
    'a\0b',
    'a\\b',
    'C:/x',
    'x\uD800',
    'x'.repeat(256),
    'x/'.repeat(2049),
    'ü'.repeat(128),
  ]
  for (const path of bad)
    t.equal(await reasonOf(inside(root, path, { allowMissing: true })), 'invalid', JSON.stringify(path.slice(0, 20)))
})

t.test('a path that leads outside is not found', async t => {
  const { root } = place(t)
  for (const path of ['out', 'out/secret', 'out/new', 'dangling', 'dangling/x', 'loop', 'loop/x', 'a.txt/x'])
    for (const allowMissing of [false, true])
      t.equal(await reasonOf(inside(root, path, { allowMissing })), 'not-found', `${path} ${allowMissing}`)
})

t.test('a missing path is not found unless the call allows it', async t => {
  const { root } = place(t)
  t.equal(await reasonOf(inside(root, 'new/x')), 'not-found')
  t.equal(await inside(root, 'new/x', { allowMissing: true }), join(root, 'new/x'))
  t.equal(await inside(root, 'in/new', { allowMissing: true }), join(root, 'dir/new'))
  t.equal(await reasonOf(inside(join(root, 'none'), 'x', { allowMissing: true })), 'not-found')
})

t.test('a root that is a link stands for its target', async t => {
  const { root, top } = place(t)
  symlinkSync('root', join(top, 'alias'))
  mkdirSync(join(root, 'deep'))
  writeFileSync(join(root, 'deep/x'), '')
  t.equal(await inside(join(top, 'alias'), 'deep/x'), join(root, 'deep/x'))
})

t.test('a folder contains itself and the paths below it, but not names with the same prefix', async t => {
  t.ok(contains('/a/b', '/a/b'))
  t.ok(contains('/a/b', '/a/b/c'))
  t.ok(contains('/', '/a'))
  t.notOk(contains('/a/b', '/a/bc'))
})
