import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Copies } from '../../../../plugins/agent/copies/copies.js'
import { commit, git, place } from './copies-support.js'

/** Refs of people, and what a new conversation `one` makes of each. */
const THEIRS: { readonly [ref: string]: string } = {
  'refs/heads/agent/one': 'agent/one-2',
  'refs/heads/agent/one/deep': 'agent/one-2',
  'refs/heads/agent/one/very/deep': 'agent/one-2',
  'refs/heads/agent/one-2': 'agent/one',
  'refs/heads/agent': 'sandbox-agent/one',
  'refs/heads/agent/other': 'agent/one',
  'refs/heads/agents': 'agent/one',
  'refs/heads/one': 'agent/one',
  'refs/sandbox/parked/one': 'agent/one-2',
  'refs/tags/agent/one': 'agent/one',
  'refs/remotes/origin/agent/one': 'agent/one',
}

/** Ways in which git keeps refs. */
const FORMS: { readonly [form: string]: (repo: string) => void } = {
  loose: () => {},
  packed: repo => git(repo, 'pack-refs', '--all'),
  'packed, and its folders left': repo => {
    git(repo, 'pack-refs', '--all')
    mkdirSync(join(repo, '.git/refs/heads/agent/one/empty'), { recursive: true })
  },
}

/** Every ref with its commit and reflog, as git tells them. */
const refsOf = (repo: string) => git(repo, 'for-each-ref', '--format=%(refname) %(objectname)')

for (const [form, keep] of Object.entries(FORMS))
  for (const [ref, branch] of Object.entries(THEIRS)) {
    if (form !== 'loose' && form !== 'packed' && /heads\/agent(?:$|\/one)/.test(ref)) continue
    t.test(`${ref} of somebody else stays through the life of a conversation (${form})`, async t => {
      const { copies, workspace } = place(t)
      const base = git(workspace, 'rev-parse', 'HEAD')
      const theirs = git(workspace, 'commit-tree', '-m', 'of a person', '-p', base, `${base}^{tree}`)
      git(workspace, 'update-ref', '--create-reflog', ref, theirs)
      keep(workspace)
      const before = refsOf(workspace)
      const opened = await copies.open('one', [])
      t.equal(opened.branch, branch)
      writeFileSync(join(copies.dir('one'), 'work'), 'w\n')
      const [tip] = await copies.commitRest('one', opened.repos)
      t.equal(tip?.out, undefined)
      t.equal(git(workspace, 'rev-parse', `refs/heads/${branch}`), tip?.tip)
      t.equal(git(workspace, 'rev-parse', ref), theirs)
      await copies.retire('one', opened.repos)
      t.equal(refsOf(workspace).split('\n').length, before.split('\n').length + 1)
      const again = await copies.open('one', opened.repos)
      t.equal(again.branch, branch)
      t.ok(existsSync(join(copies.dir('one'), 'work')))
      await copies.remove('one', opened.repos)
      t.equal(refsOf(workspace), before)
    })
  }

t.test('two sandboxes on one repository have conversations of the same id', async t => {
  const { copies, workspace } = place(t)
  const data = join(workspace, '../second')
  mkdirSync(data)
  const second = new Copies({ workspace, folder: join(data, 'agent'), data })
  const [one, two] = [await copies.open('one', []), await second.open('one', [])]
  t.same([one.branch, two.branch], ['agent/one', 'agent/one-2'])
  for (const [each, { repos }] of [
    [copies, one],
    [second, two],
  ] as const) {
    writeFileSync(join(each.dir('one'), 'work'), 'w\n')
    t.same(
      (await each.commitRest('one', repos)).map(({ out }) => out),
      [undefined],
    )
    await each.retire('one', repos)
    await each.open('one', repos)
  }
  await second.remove('one', two.repos)
  t.equal((await copies.commitRest('one', one.repos))[0]!.tip, git(workspace, 'rev-parse', 'agent/one'))
  await second.prune(() => false)
  t.ok(git(workspace, 'rev-parse', 'agent/one'))
})

t.test('a branch that somebody moved is neither reset, parked nor deleted', async t => {
  const { copies, workspace } = place(t)
  const { repos } = await copies.open('one', [])
  const moved = git(workspace, 'commit-tree', '-m', 'of a person', 'HEAD^{tree}')
  git(workspace, 'update-ref', 'refs/heads/agent/one', moved)
  await copies.remove('one', repos)
  t.equal(git(workspace, 'rev-parse', 'agent/one'), moved)
  t.equal((await copies.open('one', [])).branch, 'agent/one-2', 'the next one has another name')
})

t.test('a conversation whose creation was interrupted has its name again', async t => {
  const { copies, workspace, data } = place(t)
  const interrupted = new Copies({ workspace, folder: join(data, 'plugins/agent'), data })
  await interrupted.open('one', [])
  commit(workspace, { more: 'm\n' }, 'on')
  t.equal((await copies.open('one', [])).branch, 'agent/one')
  t.equal(git(workspace, 'rev-parse', 'agent/one'), git(workspace, 'rev-parse', 'HEAD'))
})
