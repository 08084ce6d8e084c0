import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { makeEarlier } from '../../../support/repositories/earlier-copy.js'
import { bytesOf, commit, git, gitdirOf, place } from './copies-support.js'

/**
 * A copy as an earlier version left it: with a commit of its agent, staged and unstaged changes, and a stopped
 * merge.
 */
const earlier = async (t: Test) => {
  const here = place(t, true)
  const { copies, dir, workspace, data } = here
  const repos = await copies.ensure('c-1', [])
  commit(dir, { 'own.txt': 'own\n' }, 'its own')
  makeEarlier(join(data, 'plugins/agent'), 'c-1')
  t.equal(git(dir, 'rev-parse', '--git-common-dir'), join(workspace, '.git'), 'it is a worktree as git makes it')
  t.match(git(workspace, 'worktree', 'list'), dir)
  writeFileSync(join(dir, 'staged.txt'), 'staged\n')
  git(dir, 'add', 'staged.txt')
  writeFileSync(join(dir, 'loose.txt'), 'loose\n')
  return { ...here, repos, tip: git(dir, 'rev-parse', 'HEAD') }
}

t.test('a copy of an earlier version keeps its state, and gets its own git dir', async t => {
  const { again, dir, workspace, data, repos, tip } = await earlier(t)
  const [before, status] = [bytesOf(dir), git(dir, 'status', '--porcelain')]
  const copies = again()
  t.same(await copies.ensure('c-1', repos), repos)
  t.same(bytesOf(dir), before)
  t.equal(git(dir, 'status', '--porcelain'), status, 'staged changes are still staged')
  t.equal(git(dir, 'rev-parse', '--git-common-dir'), gitdirOf(data, 'c-1'))
  t.notOk(existsSync(join(workspace, '.git/worktrees')))
  t.notOk(existsSync(join(workspace, 'clients/foo bar/.git/worktrees')))
  t.equal(git(dir, 'rev-parse', 'HEAD'), tip)
  const [root] = await copies.commitRest('c-1', repos)
  t.equal(git(workspace, 'rev-parse', 'agent/c-1'), root!.tip)
  t.equal(git(workspace, 'log', '--format=%s', 'agent/c-1', '-2'), 'Keep uncommitted work\nits own')
  t.equal(git(workspace, 'fsck', '--strict', '--no-dangling'), '')
})

t.test('the state of a stopped merge is kept', async t => {
  const { again, dir, workspace, repos } = await earlier(t)
  git(dir, 'commit', '-qam', 'rest')
  commit(workspace, { 'own.txt': 'theirs\n' }, 'third')
  t.throws(() => git(dir, 'merge', 'main'))
  await again().ensure('c-1', repos)
  t.match(git(dir, 'status'), /still merging|Unmerged paths|unmerged/)
  t.ok(git(dir, 'rev-parse', 'MERGE_HEAD'))
})

t.test('an earlier copy can be landed, archived and removed without being used first', async t => {
  await t.test('committed', async t => {
    const { again, repos, workspace } = await earlier(t)
    const [{ tip } = { tip: '' }] = await again().commitRest('c-1', repos)
    t.equal(git(workspace, 'rev-parse', 'agent/c-1'), tip)
  })
  await t.test('archived and brought back', async t => {
    const { again, dir, repos, workspace } = await earlier(t)
    await again().retire('c-1', repos)
    t.equal(git(workspace, 'for-each-ref', '--format=%(refname)', 'refs/sandbox'), 'refs/sandbox/parked/c-1')
    t.notOk(existsSync(join(workspace, '.git/worktrees')))
    await again().ensure('c-1', repos)
    t.equal(readFileSync(join(dir, 'loose.txt'), 'utf8'), 'loose\n')
  })
  await t.test('taken away', async t => {
    const { again, dir, repos, workspace } = await earlier(t)
    await again().remove('c-1', repos)
    t.notOk(existsSync(dir))
    t.notOk(existsSync(join(workspace, '.git/worktrees')))
    t.equal(git(workspace, 'branch', '--list', 'agent/*'), '')
  })
})

t.test(
  'a start removes leftover entries of an earlier version, and keeps those of its copies until they ' + 'are used',
  async t => {
    const { again, dir, workspace, repos, data } = await earlier(t)
    await again().prune(id => id === 'c-1')
    t.match(git(workspace, 'worktree', 'list'), dir)
    await again().ensure('c-1', repos)
    git(workspace, 'worktree', 'add', '-q', '-f', '--detach', join(data, 'plugins/agent/checkouts/gone'))
    rmSync(join(data, 'plugins/agent/checkouts/gone'), { recursive: true })
    await again().prune(id => id === 'c-1')
    t.notMatch(git(workspace, 'worktree', 'list'), 'checkouts/')
  },
)

t.test('a warm copy of an earlier version is made again', async t => {
  const { copies, again, dir, data, workspace } = place(t)
  await copies.warm()
  await copies.close()
  const note = join(data, 'plugins/agent/made/.spare.json')
  writeFileSync(note, readFileSync(note, 'utf8').replace(/"gitdir":"[^"]*"/, '"entry":"spare"'))
  const next = again()
  const repos = await next.ensure('c-1', [])
  t.same(bytesOf(dir), bytesOf(workspace))
  await next.warm()
  await next.close()
  t.ok(existsSync(join(gitdirOf(data, '.spare'), 'index')))
  t.same(await next.commitRest('c-1', repos), [{ repo: 'root', tip: repos[0]!.base }])
})
