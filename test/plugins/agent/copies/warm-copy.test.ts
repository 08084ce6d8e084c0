import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { onceIn } from '../../../support/changes.js'
import { daemonWith, folderOf, inGit, makeWorkspace, type Support } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { runTurn } from '../../../support/turns.js'
import { bytesOf, commit, git, gitdirOf, place } from './copies-support.js'

t.test('a copy made from the warm copy equals a new one, also after commits to the main line', async t => {
  const { copies, workspace, dir, data, again } = place(t, true)
  await copies.warm()
  await copies.warm()
  const spare = join(data, 'plugins/agent/checkouts/.spare')
  t.ok(existsSync(join(spare, 'clients/foo bar/inner.txt')))
  const head = commit(workspace, { 'later.txt': '1' }, 'third')
  writeFileSync(join(spare, 'mark.log'), '')
  const repos = await copies.ensure('c-1', [])
  t.equal(repos[0]?.base, head)
  t.ok(existsSync(join(dir, 'mark.log')), 'it was made from the warm copy')
  rmSync(join(dir, 'mark.log'))
  t.notOk(existsSync(spare))
  t.same(Object.keys(bytesOf(dir)).sort(), Object.keys(bytesOf(workspace)).sort())
  t.equal(git(dir, 'branch', '--show-current'), 'agent/c-1')
  t.equal(git(dir, 'status', '--porcelain', '--', ':!clients'), '')
  writeFileSync(join(dir, 'mine'), '')
  const tips = await again().commitRest('c-1', repos)
  t.equal(git(workspace, 'rev-parse', 'agent/c-1'), tips[0]?.tip)
  await copies.warm()
  t.equal((await copies.ensure('c-2', [])).length, 2)
  t.match(git(workspace, 'branch', '--list'), /agent\/c-2/)
})

t.test('an incomplete warm copy is not used', async t => {
  const { copies, data, dir } = place(t)
  await copies.warm()
  rmSync(gitdirOf(data, '.spare'), { recursive: true })
  await copies.ensure('c-1', [])
  t.equal(git(dir, 'status', '--porcelain'), '')
  await copies.warm()
  rmSync(join(data, 'plugins/agent/made/.spare.json'))
  await copies.ensure('c-2', [])
  await copies.warm()
  await copies.prune(id => ['c-1', 'c-2'].includes(id))
  await copies.settled()
  t.same(readdirSync(join(data, 'plugins/agent/checkouts')), ['.spare', 'c-1', 'c-2'])
})

t.test('a warm copy that cannot be made leaves nothing', async t => {
  const { copies, workspace, data } = place(t)
  const blob = git(workspace, 'rev-parse', 'HEAD:a b ü.txt')
  rmSync(join(workspace, '.git/objects', blob.slice(0, 2), blob.slice(2)))
  await t.rejects(copies.warm(), 'git finds no such object')
  const left = (name: string) => readdirSync(join(data, 'plugins/agent', name))
  t.same([left('git'), left('checkouts')], [[], []])
  await copies.settled()
})

/** The index of the warm copy's only tree. */
const indexOf = ({ data }: ReturnType<typeof place>) => join(gitdirOf(data, '.spare'), 'index')

/** States that prevent a fast update of the warm copy, or any update. */
const IN_THE_WAY: { readonly [what: string]: (spare: string, here: ReturnType<typeof place>) => void } = {
  'a file at the path of a new one': spare => writeFileSync(join(spare, 'later.txt'), 'in the way'),
  'a folder at the path of a new file': spare => mkdirSync(join(spare, 'later.txt')),
  'local changes in a file that the commit changes': spare => writeFileSync(join(spare, 'a b ü.txt'), 'changed'),
  'a missing file': spare => rmSync(join(spare, 'a b ü.txt')),
  'a lock of a git that was killed': (_, here) => writeFileSync(`${indexOf(here)}.lock`, ''),
  'no index': (_, here) => rmSync(indexOf(here)),
  'an index that cannot be read': (_, here) => writeFileSync(indexOf(here), 'no index'),
}

for (const [what, put] of Object.entries(IN_THE_WAY)) {
  t.test(`a copy equals a new one if the warm copy has ${what}`, async t => {
    const here = place(t)
    const { copies, workspace, data, dir } = here
    await copies.warm()
    await copies.close()
    put(join(data, 'plugins/agent/checkouts/.spare'), here)
    const head = commit(workspace, { 'later.txt': 'later\n', 'a b ü.txt': 'two\n' }, 'third')
    const repos = await copies.ensure('c-1', [])
    t.equal(repos[0]?.base, head)
    t.same(bytesOf(dir), bytesOf(workspace))
    t.same(await copies.commitRest('c-1', repos), [{ repo: 'root', tip: head }], 'nothing is left to commit')
    t.equal(git(workspace, 'rev-parse', 'agent/c-1'), head)
  })
}

t.test(
  'a repository that is added or removed after a first turn changes the next copy, and no existing one',
  async t => {
    const { copies, workspace, data } = place(t)
    const folder = (id: string) => join(data, 'plugins/agent/checkouts', id)
    await copies.warm()
    const before = await copies.ensure('before', [])
    await copies.warm()
    const nested = join(workspace, 'nested')
    mkdirSync(nested)
    git(nested, 'init', '-q', '-b', 'trunk')
    commit(nested, { 'n.txt': 'n\n' }, 'inner first')

    const during = await copies.ensure('during', [])
    t.same(
      during.map(({ repo }) => repo),
      ['root', 'nested'],
    )
    t.equal(readFileSync(join(folder('during'), 'nested/n.txt'), 'utf8'), 'n\n')
    writeFileSync(join(folder('before'), 'mine.txt'), 'mine')
    mkdirSync(join(folder('before'), 'nested'))
    writeFileSync(join(folder('before'), 'nested/own.txt'), 'own')
    commit(workspace, { 'main.txt': 'main\n' }, 'the main line moves')
    const moved = await copies.sync('before', await copies.ensure('before', before))
    t.match(moved, { repos: exactly({ repo: 'root' }), commits: 1, blocked: { length: 0 } })
    t.equal(
      git(workspace, 'ls-tree', '-r', '--name-only', 'agent/before', 'nested', 'mine.txt'),
      'mine.txt\nnested/own.txt',
      'its own changes are kept',
    )

    await copies.warm()
    rmSync(nested, { recursive: true })
    t.same(
      (await copies.ensure('after', [])).map(({ repo }) => repo),
      ['root'],
    )
    t.notOk(existsSync(join(folder('after'), 'nested')))
    writeFileSync(join(folder('during'), 'mine.txt'), 'mine')
    writeFileSync(join(folder('during'), 'nested/n.txt'), 'work on what is gone')
    t.same(
      (await copies.ensure('during', during)).map(({ repo }) => repo),
      ['root'],
    )
    t.equal(readFileSync(join(folder('during'), 'mine.txt'), 'utf8'), 'mine', 'uncommitted work is not lost')
    t.equal(git(workspace, 'ls-tree', '-r', '--name-only', 'agent/during', 'nested', 'mine.txt'), 'mine.txt')
  },
)

t.test(
  'dependencies that are installed after a first turn are in the next copy, and the existing one keeps its own',
  async t => {
    const { copies, workspace, dir, data } = place(t)
    const repos = await copies.ensure('c-1', [])
    await copies.warm()
    mkdirSync(join(workspace, 'node_modules/dep'), { recursive: true })
    writeFileSync(join(workspace, 'node_modules/dep/index.js'), 'dep')
    mkdirSync(join(dir, 'node_modules/own'), { recursive: true })
    writeFileSync(join(dir, 'node_modules/own/index.js'), 'own')
    t.same(await copies.ensure('c-1', repos), repos)
    t.same((await copies.wall('c-1')).shown, [])
    t.same(readdirSync(join(dir, 'node_modules')), ['own'])
    const second = await copies.ensure('c-2', [])
    const place2 = join(workspace, 'node_modules')
    t.same((await copies.wall('c-2')).shown, [{ from: place2, to: place2 }])
    t.same(await copies.commitRest('c-2', second), [{ repo: 'root', tip: second[0]!.base }])
    t.equal(git(join(data, 'plugins/agent/checkouts/c-2'), 'status', '--porcelain'), '')
  },
)

// In the daemon ------------------------------------------------------------------------------------------------------

const copyOf = ({ data }: Pick<Support, 'data'>, id: string) => join(data, 'agent/checkouts', id)

/** Resolves once the warm copy is complete and at a commit. */
const spareAt = ({ data }: Pick<Support, 'data'>, head: string): Promise<void> => {
  const made = join(data, 'agent/made')
  const note = join(made, '.spare.json')
  return onceIn(
    made,
    () =>
      existsSync(note)
      && (JSON.parse(readFileSync(note, 'utf8')) as { repos: { head: string }[] }).repos[0]?.head === head,
  )
}

/** Makes a commit that adds, changes, moves and removes files, and replaces some; returns it. */
const busyCommit = (workspace: string, word: string): string => {
  writeFileSync(join(workspace, 'README.md'), `${word}\n`)
  writeFileSync(join(workspace, `${word} ü.txt`), `${word}\n`)
  inGit(workspace, 'mv', 'moves.txt', `moved-${word}.txt`)
  inGit(workspace, 'rm', '-q', 'goes.txt')
  chmodSync(join(workspace, 'tool'), 0o755)
  rmSync(join(workspace, 'becomes'))
  mkdirSync(join(workspace, 'becomes'))
  writeFileSync(join(workspace, 'becomes/in'), 'in\n')
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', word)
  return inGit(workspace, 'rev-parse', 'HEAD').trim()
}

const FILES = {
  'README.md': '# work\n',
  'moves.txt': 'moves\n'.repeat(20),
  'goes.txt': 'goes\n',
  tool: '#!/bin/sh\n',
  becomes: 'a file\n',
}

const begins = async (t: Test, daemon: Support, id: string, head: string): Promise<void> => {
  const frames = await runTurn(daemon.client, id, 'say here', { isolated: true })
  t.match(frames[0], { kind: 'worktree', base: head })
  t.match(frames[1], { kind: 'checkpoint', id: `branch:${head}` })
  t.same(bytesOf(copyOf(daemon, id)), bytesOf(daemon.workspace))
  t.equal(inGit(copyOf(daemon, id), 'status', '--porcelain'), '')
}

t.test('the warm copy follows a commit of the main line, and the next isolated turn starts from it', async t => {
  const daemon = await daemonWith(t, ['agent'], { files: FILES })
  const { workspace } = daemon
  await begins(t, daemon, 'first', inGit(workspace, 'rev-parse', 'HEAD').trim())
  await spareAt(daemon, inGit(workspace, 'rev-parse', 'HEAD').trim())
  const head = busyCommit(workspace, 'second')
  await spareAt(daemon, head)
  const spare = copyOf(daemon, '.spare')
  t.same(bytesOf(spare), bytesOf(workspace))
  t.equal(inGit(spare, 'status', '--porcelain'), '')
  const { ino } = statSync(spare)
  await begins(t, daemon, 'of-the-spare', head)
  t.equal(statSync(copyOf(daemon, 'of-the-spare')).ino, ino, 'it was made from the warm copy')
  t.equal(inGit(workspace, 'rev-parse', 'agent/of-the-spare').trim(), head)
})

t.test('a turn that starts right after a commit starts from it too', async t => {
  const daemon = await daemonWith(t, ['agent'], { files: FILES })
  const { workspace } = daemon
  await begins(t, daemon, 'first', inGit(workspace, 'rev-parse', 'HEAD').trim())
  await spareAt(daemon, inGit(workspace, 'rev-parse', 'HEAD').trim())
  await begins(t, daemon, 'at-once', busyCommit(workspace, 'second'))
  for (const word of ['third', 'fourth']) {
    inGit(workspace, 'commit', '-q', '--allow-empty', '-m', word)
    await begins(t, daemon, word, inGit(workspace, 'rev-parse', 'HEAD').trim())
  }
  inGit(workspace, 'reset', '-q', '--hard', 'HEAD~3')
  await begins(t, daemon, 'rewound', inGit(workspace, 'rev-parse', 'HEAD').trim())
})

t.test('after a restart the existing warm copy continues to follow the main line', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, FILES)
  await t.test('the first start', async t => {
    const daemon = await daemonWith(t, ['agent'], where)
    await begins(t, daemon, 'first', inGit(where.workspace, 'rev-parse', 'HEAD').trim())
    await spareAt(where, inGit(where.workspace, 'rev-parse', 'HEAD').trim())
  })
  const away = busyCommit(where.workspace, 'second')
  await t.test('the next start', async t => {
    const daemon = await daemonWith(t, ['agent'], where)
    await spareAt(where, away)
    inGit(where.workspace, 'commit', '-q', '--allow-empty', '-m', 'third')
    const head = inGit(where.workspace, 'rev-parse', 'HEAD').trim()
    await spareAt(where, head)
    await begins(t, daemon, 'second', head)
  })
})
