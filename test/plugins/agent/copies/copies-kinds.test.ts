import { mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Copies } from '../../../../plugins/agent/copies/copies.js'
import { bytesOf, commit, git, gitdirOf, place } from './copies-support.js'
import { exactly } from '../../../support/lists.js'

/** A workspace made by `make`, and a copy of it with work. */
const copied = async (t: Test, make: (top: string) => void) => {
  const top = realpathSync(t.testdir({ data: { plugins: { agent: {} } } }))
  make(top)
  const [workspace, data] = [join(top, 'work'), join(top, 'data')]
  const copies = new Copies({ workspace, folder: join(data, 'plugins/agent'), data })
  const repos = await copies.ensure('c-1', [])
  const dir = copies.dir('c-1')
  writeFileSync(join(dir, 'mine.txt'), 'mine\n')
  const [{ tip, out } = { tip: '' }] = await copies.commitRest('c-1', repos)
  return { workspace, data, copies, repos, dir, tip, out }
}

const KINDS: { readonly [kind: string]: (top: string) => void } = {
  'of hashes of 256 bits': top => {
    git(top, 'init', '-q', '-b', 'main', '--object-format=sha256', 'work')
    commit(join(top, 'work'), { 'a.txt': 'a\n' }, 'first')
  },
  'cloned without its past': top => {
    git(top, 'init', '-q', '-b', 'main', 'from')
    for (const nth of ['1', '2', '3']) commit(join(top, 'from'), { 'a.txt': nth }, nth)
    git(top, 'clone', '-q', '--depth=1', `file://${join(top, 'from')}`, 'work')
  },
  'that is a linked working tree': top => {
    git(top, 'init', '-q', '-b', 'main', 'far')
    commit(join(top, 'far'), { 'a.txt': 'a\n' }, 'first')
    git(join(top, 'far'), 'worktree', 'add', '-q', '-b', 'work', join(top, 'work'))
  },
  'of a bare repository': top => {
    git(top, 'init', '-q', '-b', 'main', 'from')
    commit(join(top, 'from'), { 'a.txt': 'a\n' }, 'first')
    git(top, 'clone', '-q', '--bare', 'from', 'far.git')
    git(join(top, 'far.git'), 'worktree', 'add', '-q', '-b', 'work', join(top, 'work'))
  },
  'with all names in one file': top => {
    git(top, 'init', '-q', '-b', 'main', 'work')
    commit(join(top, 'work'), { 'a.txt': 'a\n' }, 'first')
    git(join(top, 'work'), 'tag', '-a', '-m', 'one', 'v1')
    git(join(top, 'work'), 'pack-refs', '--all')
  },
  'with faults of old tools in it': top => {
    git(top, 'init', '-q', '-b', 'main', 'work')
    commit(join(top, 'work'), { 'a.txt': 'a\n' }, 'first')
    const at = join(top, 'old')
    writeFileSync(
      at,
      `tree ${git(join(top, 'work'), 'rev-parse', 'HEAD^{tree}')}\nauthor A <> 1 +051800\ncommitter A <> 1 `
        + `+0000\n\nold\n`,
    )
    git(
      join(top, 'work'),
      'reset',
      '-q',
      '--hard',
      git(join(top, 'work'), 'hash-object', '-t', 'commit', '-w', '--literally', at),
    )
  },
}

for (const [kind, make] of Object.entries(KINDS)) {
  t.test(`a copy of a repository ${kind} works, follows it and is imported`, async t => {
    const { workspace, copies, repos, dir, tip, out } = await copied(t, make)
    t.equal(out, undefined)
    t.equal(git(workspace, 'rev-parse', 'agent/c-1'), tip)
    t.equal(git(workspace, 'show', 'agent/c-1:mine.txt'), 'mine')
    const head = commit(workspace, { 'later.txt': 'later\n' }, 'later')
    t.match(await copies.sync('c-1', repos), { repos: exactly({ base: head }), blocked: { length: 0 } })
    t.equal(readFileSync(join(dir, 'later.txt'), 'utf8'), 'later\n')
    t.equal(git(workspace, 'rev-parse', 'agent/c-1~1'), head)
    await copies.retire('c-1', repos)
    await copies.ensure('c-1', repos)
    t.equal(readFileSync(join(dir, 'mine.txt'), 'utf8'), 'mine\n')
    t.equal(git(dir, 'status', '--porcelain'), '')
  })
}

t.test('a copy sees the current refs of its repository, and keeps its own', async t => {
  const { copies, dir, workspace } = place(t)
  git(workspace, 'branch', 'gone')
  git(workspace, 'update-ref', 'refs/remotes/origin/main', 'HEAD')
  git(workspace, 'symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/main')
  const repos = await copies.ensure('c-1', [])
  git(dir, 'branch', 'own')
  git(dir, 'branch', '-f', 'gone', 'HEAD~1')
  git(dir, 'pack-refs', '--all')
  t.equal(git(dir, 'symbolic-ref', 'refs/remotes/origin/HEAD'), 'refs/remotes/origin/main')
  git(workspace, 'tag', 'v2')
  git(workspace, 'branch', '-D', 'gone')
  const head = commit(workspace, { x: '1' }, 'third')
  await copies.sync('c-1', repos)
  t.equal(git(dir, 'rev-parse', 'main'), head)
  t.equal(
    git(dir, 'for-each-ref', '--format=%(refname)'),
    [
      'refs/heads/agent/c-1',
      'refs/heads/gone',
      'refs/heads/main',
      'refs/heads/own',
      'refs/remotes/origin/HEAD',
      'refs/remotes/origin/main',
      'refs/tags/v2',
    ].join('\n'),
  )
  t.equal(git(workspace, 'for-each-ref', '--format=%(refname)', 'refs/heads'), 'refs/heads/agent/c-1\nrefs/heads/main')
})

t.test('imported objects are stored once, and an unchanged branch starts no process', async t => {
  const { copies, dir, workspace, data } = place(t)
  const repos = await copies.ensure('c-1', [])
  const own = () =>
    Object.keys(bytesOf(join(gitdirOf(data, 'c-1'), 'objects'))).filter(name => /^[0-9a-f]{2}\/|\.pack$/.test(name))
  writeFileSync(join(dir, 'one.txt'), 'one\n')
  await copies.commitRest('c-1', repos)
  t.same(own(), [])
  for (let nth = 0; nth < 150; nth++) writeFileSync(join(dir, `many-${nth}.txt`), `${nth}\n`)
  const [many] = await copies.commitRest('c-1', repos)
  t.same(own(), [])
  t.match(git(workspace, 'count-objects', '-v'), /packs: 1\n/, 'many objects are imported as a pack')
  t.equal(git(workspace, 'rev-parse', 'agent/c-1'), many!.tip)
  t.equal(git(workspace, 'fsck', '--strict', '--no-dangling'), '')
  const before = bytesOf(join(workspace, '.git/objects'))
  await copies.commitRest('c-1', repos)
  t.same(bytesOf(join(workspace, '.git/objects')), before)
})

t.test('the branch of a copy does not change while the main checkout has it checked out', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  git(workspace, 'checkout', '-q', 'agent/c-1')
  writeFileSync(join(dir, 'mine.txt'), 'mine')
  t.match(await copies.commitRest('c-1', repos), exactly({ out: /the main checkout of root is on agent\/c-1/ }))
  t.equal(git(workspace, 'status', '--porcelain'), '')
  git(workspace, 'checkout', '-q', 'main')
  t.equal((await copies.commitRest('c-1', repos))[0]!.out, undefined)
})

t.test('a branch that a person deleted in the repository is created again after the next turn', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  git(workspace, 'branch', '-D', 'agent/c-1')
  writeFileSync(join(dir, 'mine.txt'), 'mine')
  const [mine] = await copies.commitRest('c-1', repos)
  t.equal(git(workspace, 'rev-parse', 'agent/c-1'), mine!.tip)
  mkdirSync(join(workspace, 'x'))
  rmSync(dir, { recursive: true })
  await copies.ensure('c-1', repos)
  t.equal(readFileSync(join(dir, 'mine.txt'), 'utf8'), 'mine')
})

t.test('a commit that the repository already has from a removed conversation is imported like any other', async t => {
  const { workspace, copies, repos, tip } = await copied(t, KINDS['with all names in one file']!)
  await copies.remove('c-1', repos)
  t.throws(() => git(workspace, 'rev-parse', '--verify', '-q', 'agent/c-1'))
  const next = await copies.ensure('c-2', [])
  git(copies.dir('c-2'), 'reset', '-q', '--hard', tip)
  t.match(await copies.commitRest('c-2', next), exactly({ tip, out: undefined }))
  t.equal(git(workspace, 'rev-parse', 'agent/c-2'), tip)
  t.equal(git(workspace, 'fsck', '--strict', '--no-dangling', '--no-progress'), '')
})
