import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { dropBranch, parkBranch, putBranch, unparkBranch } from '../../../../plugins/agent/copies/refs.js'
import { folderOf, inGit, makeWorkspace } from '../../../support/daemon.js'

const place = (t: Test) => {
  const folder = folderOf(t)
  const workspace = join(folder, 'workspace')
  makeWorkspace(workspace)
  const common = join(workspace, '.git')
  const git = (...args: string[]) => inGit(workspace, ...args).trim()
  return {
    folder,
    common,
    git,
    head: git('rev-parse', 'HEAD'),
    at: (name: string) => join(common, 'refs/heads/agent', name),
  }
}

const branches = (git: (...args: string[]) => string) =>
  git('for-each-ref', '--format=%(refname)', 'refs/heads/agent', 'refs/sandbox')

t.test('a branch is written, parked, restored and deleted, and git sees each step', async t => {
  const { common, git, head } = place(t)
  await putBranch(common, 'agent/c-1', head)
  t.equal(git('rev-parse', 'agent/c-1'), head)
  await parkBranch(common, 'agent/c-1', [head])
  t.equal(branches(git), 'refs/sandbox/parked/c-1')
  await unparkBranch(common, 'agent/c-1')
  t.equal(branches(git), 'refs/heads/agent/c-1')
  await dropBranch(common, 'agent/c-1', [head])
  await dropBranch(common, 'agent/c-1', [head])
  t.equal(branches(git), '')
  t.equal(git('fsck', '--strict'), '')
})

t.test('a branch and a parked one of the same name are deleted together, and others are kept', async t => {
  const { common, git, head } = place(t)
  for (const name of ['c-1', 'c-2']) await putBranch(common, `agent/${name}`, head)
  for (const name of ['c-1', 'c-2']) git('update-ref', `refs/sandbox/parked/${name}`, head)
  await dropBranch(common, 'agent/c-1', [head])
  t.equal(branches(git), 'refs/heads/agent/c-2\nrefs/sandbox/parked/c-2')
})

t.test('packed branches are rewritten and deleted as well', async t => {
  const { common, git, head } = place(t)
  git('update-ref', 'refs/heads/agent/c-1', head)
  git('update-ref', 'refs/heads/agent/c-2', head)
  git('pack-refs', '--all')
  git('commit', '-q', '--allow-empty', '-m', 'on')
  await putBranch(common, 'agent/c-1', git('rev-parse', 'HEAD'))
  t.equal(git('rev-parse', 'agent/c-1'), git('rev-parse', 'HEAD'))
  await dropBranch(common, 'agent/c-1', [head])
  t.match(branches(git), /agent\/c-1/, 'it is not where the daemon left it')
  await dropBranch(common, 'agent/c-1', [git('rev-parse', 'HEAD')])
  t.equal(branches(git), 'refs/heads/agent/c-2')
})

t.test('the reflog of a deleted branch is deleted with it', async t => {
  const { common, git, head } = place(t)
  git('branch', 'agent/c-1', head)
  t.ok(existsSync(join(common, 'logs/refs/heads/agent/c-1')))
  await dropBranch(common, 'agent/c-1', [head])
  t.notOk(existsSync(join(common, 'logs/refs/heads/agent/c-1')))
})

t.test('files that a turn left at the path of a branch or of its lock are removed and not followed', async t => {
  const { folder, common, git, head, at } = place(t)
  const outside = join(folder, 'outside')
  writeFileSync(outside, 'untouched')
  mkdirSync(at('.'), { recursive: true })
  symlinkSync(outside, at('c-1'))
  symlinkSync(outside, at('c-1.lock'))
  mkdirSync(at('c-2/deep'), { recursive: true })
  writeFileSync(at('c-2.lock'), 'left by a kill')
  for (const name of ['c-1', 'c-2']) await putBranch(common, `agent/${name}`, head)
  t.equal(branches(git), 'refs/heads/agent/c-1\nrefs/heads/agent/c-2')
  t.equal(readFileSync(outside, 'utf8'), 'untouched')
  writeFileSync(at('c-2.lock'), 'left by a kill')
  await dropBranch(common, 'agent/c-2', [head])
  t.equal(branches(git), 'refs/heads/agent/c-1')
  t.notOk(existsSync(at('c-2.lock')))
})

t.test('if another branch conflicts, git reports it and nothing is written', async t => {
  for (const packed of [false, true]) {
    const { common, git, head } = place(t)
    git('branch', 'agent', head)
    if (packed) git('pack-refs', '--all')
    await t.rejects(
      putBranch(common, 'agent/c-1', head),
      { message: /refs\/heads\/agent/ },
      packed ? 'packed' : 'loose',
    )
    t.equal(git('for-each-ref', '--format=%(refname)'), 'refs/heads/agent\nrefs/heads/main')
    t.equal(git('fsck', '--strict'), '')
  }
})

t.test('if refs are not stored as files, git is used', async t => {
  const { common, git, head } = place(t)
  mkdirSync(join(common, 'reftable'))
  await putBranch(common, 'agent/c-1', head)
  t.ok(existsSync(join(common, 'logs/refs/heads/agent/c-1')), 'git wrote its log')
  await dropBranch(common, 'agent/c-1', [head])
  t.equal(branches(git), '')
})

t.test('a lock that a kill left does not prevent the creation of a branch', async t => {
  const { common, git, at } = place(t)
  mkdirSync(at(''), { recursive: true })
  writeFileSync(`${at('c-1')}.lock`, '')
  await dropBranch(common, 'agent/c-1', [git('rev-parse', 'HEAD')])
  git('branch', 'agent/c-1', 'HEAD')
  t.equal(branches(git), 'refs/heads/agent/c-1')
})
