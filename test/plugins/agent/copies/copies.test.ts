import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Copies } from '../../../../plugins/agent/copies/copies.js'
import { listEnv } from '../../../../sdk/node/programs/run.js'
import { runWalled, wallKind } from '../../../../sdk/node/wall/wall.js'
import { exactly } from '../../../support/lists.js'
import { openFolder, stuckProgram } from '../../../support/stuck.js'
import { BYTES, bytesOf, commit, env, git, gitdirOf, place } from './copies-support.js'
import { noWall } from '../../../support/walls.js'

const walled = { skip: noWall((await wallKind()) !== 'none') }

t.test('the repositories are the root and those nested in it, never an outer one', async t => {
  const { copies, workspace } = place(t, true)
  const inner = join(workspace, 'clients/foo bar')
  t.same(await copies.repositories(), [
    { repo: 'root', dir: workspace, gitdir: join(workspace, '.git'), head: git(workspace, 'rev-parse', 'HEAD') },
    { repo: 'clients/foo bar', dir: inner, gitdir: join(inner, '.git'), head: git(inner, 'rev-parse', 'HEAD') },
  ])
  const around = realpathSync(t.testdir({ in: { sub: {} }, data: {} }))
  git(around, 'init', '-q')
  commit(around, { x: '1' }, 'x')
  t.same(
    await new Copies({
      workspace: join(around, 'in'),
      folder: join(around, 'data'),
      data: join(around, 'data'),
    }).repositories(),
    [],
  )
})

t.test("a git dir among the daemon's own files is not a repository", async t => {
  const { copies, workspace, data } = place(t)
  mkdirSync(join(data, 'history'))
  git(join(data, 'history'), 'init', '-q')
  commit(join(data, 'history'), { x: '1' }, 'x')
  mkdirSync(join(workspace, 'sly'))
  writeFileSync(join(workspace, 'sly/.git'), `gitdir: ${join(data, 'history/.git')}\n`)
  t.same(
    (await copies.repositories()).map(({ repo }) => repo),
    ['root'],
  )
})

t.test('a workspace without a repository is refused with a message', async t => {
  const top = realpathSync(t.testdir({ work: {}, data: {} }))
  const copies = new Copies({ workspace: join(top, 'work'), folder: join(top, 'data'), data: join(top, 'data') })
  await t.rejects(copies.ensure('c-1', []), {
    message: /at least one commit in the workspace, found none: run `git init`/,
  })
  git(join(top, 'work'), 'init', '-q')
  await t.rejects(copies.ensure('c-1', []), { message: /at least one commit/ })
  t.notOk(existsSync(copies.dir('c-1')))
  for (const id of ['', '..', 'a/b', '.x', 'x'.repeat(65)])
    await t.rejects(copies.ensure(id, []), { message: /expected a conversation id/ })
})

t.test('a copy is byte-equal to the commit, on its own branch, and invisible in the shared tree', async t => {
  const { copies, workspace, dir } = place(t)
  writeFileSync(join(workspace, 'uncommitted.txt'), 'not in the copy')
  const head = git(workspace, 'rev-parse', 'HEAD')
  t.same(await copies.ensure('c-1', []), [{ repo: 'root', base: head }])
  rmSync(join(workspace, 'uncommitted.txt'))
  t.same(bytesOf(dir), bytesOf(workspace))
  t.equal(git(dir, 'branch', '--show-current'), 'agent/c-1')
  t.equal(git(workspace, 'branch', '--show-current'), 'main')
  t.equal(git(dir, 'status', '--porcelain'), '')
  t.equal(git(workspace, 'status', '--porcelain'), '')
  t.match(
    await copies.resolve('c-1', [{ repo: 'root', base: head }]),
    exactly({ repo: 'root', main: workspace, copy: dir, tip: head }),
  )
})

t.test('a nested repository gets its own tree at its path, and keeps its own commits', async t => {
  const { copies, dir, workspace } = place(t, true)
  const repos = await copies.ensure('c-1', [])
  t.same(
    repos.map(({ repo }) => repo),
    ['root', 'clients/foo bar'],
  )
  t.equal(readFileSync(join(dir, 'clients/foo bar/inner.txt'), 'utf8'), 'inner\n')
  writeFileSync(join(dir, 'clients/foo bar/new ü.txt'), 'n')
  writeFileSync(join(dir, 'root.txt'), 'r')
  const tips = await copies.commitRest('c-1', repos, 'both')
  t.equal(git(workspace, 'show', '--name-only', '--format=', tips[0]!.tip), 'root.txt')
  t.equal(
    git(join(workspace, 'clients/foo bar'), 'ls-tree', '--name-only', '-z', tips[1]!.tip),
    'inner.txt\0new ü.txt\0',
  )
  await copies.remove('c-1', repos)
  t.equal(git(join(workspace, 'clients/foo bar'), 'branch', '--list', 'agent/*'), '')
})

t.test('the sandbox commits remaining changes, and nothing where nothing changed', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  t.same(await copies.commitRest('c-1', repos), [{ repo: 'root', tip: repos[0]!.base }])
  mkdirSync(join(dir, '.sandbox'), { recursive: true })
  writeFileSync(join(dir, '.sandbox/x'), 'never')
  t.same(await copies.commitRest('c-1', repos), [{ repo: 'root', tip: repos[0]!.base }], 'not if only .sandbox did')
  writeFileSync(join(dir, 'bytes.bin'), Buffer.concat([BYTES, BYTES]))
  writeFileSync(join(dir, 'neu ü.txt'), 'new')
  writeFileSync(join(dir, 'x.log'), 'ignored')
  rmSync(join(dir, 'run.sh'))
  git(dir, 'add', '-f', '.sandbox/x')
  const [{ tip } = { tip: '' }] = await copies.commitRest('c-1', repos, 'what I did\n\nmore')
  t.equal(
    git(workspace, 'log', '-1', '--format=%an <%ae>|%s|%b', tip),
    'Sandbox agent <agent@sandbox.local>|what I did|more',
  )
  t.equal(git(workspace, 'show', '--name-status', '--format=', '-z', tip), 'M\0bytes.bin\0A\0neu ü.txt\0D\0run.sh\0')
  t.same(execFileSync('git', ['show', `${tip}:bytes.bin`], { cwd: workspace, env }), Buffer.concat([BYTES, BYTES]))
  t.equal(git(workspace, 'status', '--porcelain', '--', ':!.sandbox'), '')
  t.same(await copies.checkpoint('c-1', repos), { id: `branch:${tip}`, commits: [{ repo: 'root', tip }] })
})

t.test('a sync rebases the branch onto the main line and returns the new base', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  t.match(await copies.sync('c-1', repos), { repos, commits: 0, blocked: { length: 0 } })
  writeFileSync(join(dir, 'mine.txt'), 'mine')
  commit(workspace, { 'theirs.txt': '1' }, 'third')
  const head = commit(workspace, { 'theirs.txt': '2' }, 'fourth')
  t.match(await copies.sync('c-1', repos), {
    repos: exactly({ repo: 'root', base: head }),
    commits: 2,
    blocked: { length: 0 },
  })
  t.equal(git(dir, 'log', '--format=%s', '-3'), 'Keep uncommitted work\nfourth\nthird')
  t.equal(readFileSync(join(dir, 'theirs.txt'), 'utf8'), '2')
  t.equal(git(workspace, 'rev-parse', 'main'), head)
})

t.test('a main line that was rewritten does not bring its old commits back', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  writeFileSync(join(dir, 'mine.txt'), 'mine')
  writeFileSync(join(workspace, 'src/日本.ts'), 'other\n')
  git(workspace, 'commit', '-qa', '--amend', '-m', 'second, again')
  t.same((await copies.sync('c-1', repos)).blocked, [])
  t.equal(git(dir, 'log', '--format=%s'), 'Keep uncommitted work\nsecond, again\nfirst')
})

t.test('work that was landed and committed on the main line does not block the sync', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  for (const text of ['2\n', '3\n']) {
    writeFileSync(join(dir, 'f.txt'), text)
    writeFileSync(join(dir, 'a b ü.txt'), text)
    await copies.commitRest('c-1', repos)
  }
  const landedTip = git(dir, 'rev-parse', 'HEAD')
  writeFileSync(join(dir, 'after.txt'), '')
  const head = commit(workspace, { 'f.txt': '3\n', 'a b ü.txt': '3\n', 'else.txt': '' }, 'all of it at once')
  t.match(
    await copies.sync(
      'c-1',
      repos.map(repo => ({ ...repo, landedTip })),
    ),
    { repos: exactly({ base: head }), blocked: { length: 0 } },
  )
  t.equal(git(dir, 'log', '--format=%s', '-2'), 'Keep uncommitted work\nall of it at once')
})

t.test('work that was landed and is not on the main line yet stays on the branch', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  writeFileSync(join(dir, 'f.txt'), '1')
  const [landed] = await copies.commitRest('c-1', repos)
  commit(workspace, { 'else.txt': '' }, 'third')
  t.same(
    (
      await copies.sync(
        'c-1',
        repos.map(repo => ({ ...repo, landedTip: landed!.tip })),
      )
    ).blocked,
    [],
  )
  t.equal(readFileSync(join(dir, 'f.txt'), 'utf8'), '1')
})

t.test('a rebase with conflicts leaves the copy byte-equal and is reported', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  writeFileSync(join(dir, 'a b ü.txt'), 'mine\n')
  writeFileSync(join(dir, 'other.txt'), 'kept')
  writeFileSync(join(dir, 'x.log'), 'ignored')
  commit(workspace, { 'a b ü.txt': 'theirs\n' }, 'third')
  const [before] = await copies.commitRest('c-1', repos)
  const bytes = bytesOf(dir)
  t.match(await copies.sync('c-1', repos), {
    repos,
    commits: 0,
    blocked: exactly('root'),
    reports: exactly({ blocked: true, paths: exactly('a b ü.txt') }),
  })
  t.same(bytesOf(dir), bytes)
  t.equal(git(dir, 'symbolic-ref', 'HEAD'), 'refs/heads/agent/c-1')
  t.same(await copies.commitRest('c-1', repos), [before])
})

t.test('a copy that is not on its branch is not rebased', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  git(dir, 'checkout', '-q', '--detach')
  commit(workspace, { x: '1' }, 'third')
  t.match(await copies.sync('c-1', repos), {
    repos,
    commits: 0,
    blocked: exactly('root'),
    reports: exactly({ blocked: true, paths: { length: 0 } }),
  })
})

t.test('an incomplete copy is made again, and a complete one is left unchanged', async t => {
  const { copies, dir, data, again } = place(t)
  const repos = await copies.ensure('c-1', [])
  writeFileSync(join(dir, 'kept.txt'), 'k')
  t.same(await again().ensure('c-1', repos), repos)
  t.ok(existsSync(join(dir, 'kept.txt')))

  rmSync(join(data, 'plugins/agent/made'), { recursive: true })
  rmSync(join(dir, 'src'), { recursive: true })
  t.same(await again().ensure('c-1', []), repos, 'killed before the note was written')
  t.equal(git(dir, 'status', '--porcelain'), '')
  t.notOk(existsSync(join(dir, 'kept.txt')))

  rmSync(dir, { recursive: true })
  t.same(await again().ensure('c-1', repos), repos, 'the folder is gone')
  t.equal(git(dir, 'status', '--porcelain'), '')

  rmSync(gitdirOf(data, 'c-1'), { recursive: true })
  t.same(await again().ensure('c-1', repos), repos, 'its git dir is gone')
  t.equal(git(dir, 'status', '--porcelain'), '')
})

t.test('a daemon killed during a checkout leaves nothing that the next one cannot repair', async t => {
  const { dir, workspace, data, again } = place(t)
  const { path, grants, reached } = stuckProgram(t)
  git(workspace, 'config', 'filter.f.smudge', path)
  mkdirSync(join(workspace, '.git/info'), { recursive: true })
  writeFileSync(join(workspace, '.git/info/attributes'), '*.txt filter=f\n')
  const { href } = new URL('../../../../plugins/agent/copies/copies.js', import.meta.url)
  const deps = { workspace, data, folder: join(data, 'plugins/agent'), grants }
  const code = `
    const { Copies } = await import(${JSON.stringify(href)})
    await new Copies(${JSON.stringify(deps)}).ensure('c-1', [])`
  const daemon = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'inherit' })
  await reached()
  daemon.kill('SIGKILL')
  await once(daemon, 'exit')
  git(workspace, 'config', '--unset', 'filter.f.smudge')
  const copies = again()
  const repos = await copies.ensure('c-1', [])
  t.same(bytesOf(dir), bytesOf(workspace))
  t.same(await copies.commitRest('c-1', repos), [{ repo: 'root', tip: repos[0]!.base }])
})

t.test('git prune and git gc in the repository remove nothing that a copy needs', async t => {
  const { copies, dir, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  writeFileSync(join(dir, 'kept'), 'kept')
  git(dir, 'add', 'kept')
  git(dir, 'commit', '-qm', 'its own')
  git(workspace, 'commit', '-q', '--amend', '-m', 'second, again')
  git(workspace, 'reflog', 'expire', '--expire=now', '--all')
  git(workspace, 'worktree', 'prune')
  git(workspace, 'gc', '-q', '--prune=now')
  t.same(await copies.ensure('c-1', repos), repos)
  t.equal(git(dir, 'log', '--format=%s'), 'its own\nsecond\nfirst')
  t.equal(git(dir, 'fsck', '--strict', '--no-dangling'), '')
})

t.test('a lost copy is made again from its branch', async t => {
  const { copies, dir, again } = place(t)
  const repos = await copies.ensure('c-1', [])
  writeFileSync(join(dir, 'work.txt'), 'w')
  await copies.commitRest('c-1', repos)
  rmSync(dir, { recursive: true })
  await t.rejects(copies.commitRest('c-1', repos), { message: /it was cleaned up/ })
  t.same(await again().ensure('c-1', repos), repos)
  t.equal(readFileSync(join(dir, 'work.txt'), 'utf8'), 'w')
})

t.test('a rebase interrupted by a kill is undone on the next turn, and its locks are removed', async t => {
  const { copies, dir, workspace, data, again } = place(t)
  const repos = await copies.ensure('c-1', [])
  writeFileSync(join(dir, 'a b ü.txt'), 'mine\n')
  const [tip] = await copies.commitRest('c-1', repos)
  const bytes = bytesOf(dir)
  const head = commit(workspace, { 'a b ü.txt': 'theirs\n' }, 'third')
  mkdirSync(join(data, 'plugins/agent/rebasing'))
  writeFileSync(join(data, 'plugins/agent/rebasing/c-1:root'), tip!.tip)
  t.throws(() => git(dir, 'rebase', '-q', '--onto', head, repos[0]!.base))
  writeFileSync(join(gitdirOf(data, 'c-1'), 'index.lock'), '')
  await again().ensure('c-1', repos)
  t.same(bytesOf(dir), bytes)
  t.same(await copies.commitRest('c-1', repos), [tip])
})

for (const [how, leave] of Object.entries({
  'only begun': (entry: string) => writeFileSync(join(entry, 'rebase-merge/interactive'), ''),
  'forgotten half-way': (entry: string) => rmSync(join(entry, 'rebase-merge'), { recursive: true }),
})) {
  t.test(`a rebase that was ${how} by a killed git is undone as soon as the copy is used`, async t => {
    const { copies, dir, workspace, data, again } = place(t)
    const repos = await copies.ensure('c-1', [])
    writeFileSync(join(dir, 'work.txt'), 'mine\n')
    const [tip] = await copies.commitRest('c-1', repos)
    const head = commit(workspace, { 'main.txt': 'theirs\n' }, 'third')
    mkdirSync(join(data, 'plugins/agent/rebasing'))
    writeFileSync(join(data, 'plugins/agent/rebasing/c-1:root'), tip!.tip)
    const entry = gitdirOf(data, 'c-1')
    git(dir, 'checkout', '-q', '--detach', head)
    mkdirSync(join(entry, 'rebase-merge'))
    leave(entry)
    const after = again()
    t.same(await after.commitRest('c-1', repos), [tip])
    t.equal(git(dir, 'symbolic-ref', 'HEAD').trim(), 'refs/heads/agent/c-1')
    t.equal(readFileSync(join(dir, 'work.txt'), 'utf8'), 'mine\n')
    t.same((await after.sync('c-1', repos)).blocked, [])
    t.ok(existsSync(join(dir, 'main.txt')), 'it follows the main line')
  })
}

t.test('a new copy is not affected by an interrupted rebase of the previous one', async t => {
  const { copies, dir, data, again } = place(t)
  const repos = await copies.ensure('c-1', [])
  const [old] = await copies.commitRest('c-1', repos)
  mkdirSync(join(data, 'plugins/agent/rebasing'))
  writeFileSync(join(data, 'plugins/agent/rebasing/c-1:root'), old!.tip)
  rmSync(dir, { recursive: true })
  const after = again()
  await after.ensure('c-1', repos)
  writeFileSync(join(dir, 'work.txt'), 'new\n')
  await after.commitRest('c-1', repos)
  t.same(await again().ensure('c-1', repos), repos)
  t.equal(readFileSync(join(dir, 'work.txt'), 'utf8'), 'new\n')
})

t.test('a start removes every lock that a killed git left in a copy', async t => {
  const { copies, workspace, data, again } = place(t)
  await copies.ensure('c-1', [])
  const entry = gitdirOf(data, 'c-1')
  const branches = join(workspace, '.git/refs/heads/agent')
  for (const lock of [join(entry, 'REBASE_HEAD.lock'), join(entry, 'index.lock'), join(branches, 'c-1.lock')]) {
    writeFileSync(lock, '')
    utimesSync(lock, 1, 1)
  }
  await again().prune(id => ['c-1', 'c-2'].includes(id))
  t.same(
    readdirSync(entry).filter(name => name.includes('lock')),
    [],
  )
  t.same(readdirSync(branches), ['c-1'])
})

t.test('removing a copy removes its branch and entry at once, and can be repeated', async t => {
  const { copies, dir, workspace, data } = place(t)
  const repos = await copies.ensure('c-1', [])
  await copies.remove('c-1', repos)
  t.notOk(existsSync(dir))
  t.equal(git(workspace, 'branch', '--list', 'agent/*'), '')
  t.same(readdirSync(join(data, 'plugins/agent/git')), [])
  await copies.remove('c-1', repos)
  await copies.settled()
  t.same(readdirSync(join(data, 'plugins/agent/trash')), [])
  t.strictSame(await copies.resolve('c-1', repos), [{ ...repos[0], main: workspace }])
})

t.test('removing does not follow a branch that was replaced by a symbolic ref', async t => {
  const { copies, workspace } = place(t)
  const repos = await copies.ensure('c-1', [])
  const main = git(workspace, 'rev-parse', 'main')
  writeFileSync(join(workspace, '.git/refs/heads/agent/c-1'), 'ref: refs/heads/main\n')
  await copies.remove('c-1', repos)
  t.equal(git(workspace, 'rev-parse', 'main'), main)
  t.notOk(existsSync(join(workspace, '.git/refs/heads/agent/c-1')))
})

t.test('a start removes the copies of removed conversations and empties the trash', async t => {
  const { copies, workspace, data, again } = place(t)
  for (const id of ['c-1', 'c-2', 'c-3']) await copies.ensure(id, [])
  rmSync(join(data, 'plugins/agent/checkouts/c-3'), { recursive: true })
  mkdirSync(join(data, 'plugins/agent/trash/x/y'), { recursive: true })
  const next = again()
  await next.prune(id => id === 'c-1')
  await next.settled()
  t.same(readdirSync(join(data, 'plugins/agent/checkouts')), ['c-1'])
  t.same(readdirSync(join(data, 'plugins/agent/trash')), [])
  t.equal(git(workspace, 'branch', '--list', '--format=%(refname:short)', 'agent/*'), 'agent/c-1')
  const own = gitdirOf(data, 'c-1').split('/').at(-1)!
  t.same(readdirSync(join(data, 'plugins/agent/git')), [own, `${own}.form`, `${own}.seen`])
})

t.test('twenty conversations are copied at once', async t => {
  const { copies, workspace } = place(t)
  const ids = Array.from({ length: 20 }, (_, i) => `c-${i}`)
  const made = await Promise.all(ids.map(id => copies.ensure(id, [])))
  t.equal(new Set(made.map(([repo]) => repo?.base)).size, 1)
  t.equal(git(workspace, 'branch', '--list', 'agent/*').split('\n').length, 20)
})

t.test('dependencies of the main checkout are readable inside, and never committed', walled, async t => {
  const { copies, workspace, dir } = place(t)
  mkdirSync(join(workspace, 'node_modules/dep'), { recursive: true })
  writeFileSync(join(workspace, 'node_modules/dep/index.js'), 'dep')
  mkdirSync(join(workspace, '.sandbox'))
  writeFileSync(join(workspace, '.sandbox/note'), 'shared')
  const repos = await copies.ensure('c-1', [])
  const sh = async (script: string) => {
    const spec = { ...(await copies.wall('c-1')), cwd: workspace, env: listEnv() }
    return (await runWalled(spec, 'sh', ['-c', script])).stdout.toString()
  }
  t.equal(await sh('cat node_modules/dep/index.js .sandbox/note'), 'depshared')
  t.equal(await sh('echo x 2>/dev/null > node_modules/dep/index.js || echo no'), 'no\n')
  t.equal(await sh('git status --porcelain; git add -A; git status --porcelain'), '')
  t.same(await copies.commitRest('c-1', repos), [{ repo: 'root', tip: repos[0]!.base }])
  writeFileSync(join(dir, 'node_modules/own'), '')
  t.same((await copies.wall('c-1')).shown, [], 'a copy that has its own keeps its own')
  rmSync(join(dir, 'node_modules/own'))
  rmSync(join(workspace, 'node_modules'), { recursive: true })
  t.equal(await sh('ls node_modules; echo on'), 'on\n', 'a turn continues when they are removed')
})

t.test('no program that the repository names runs outside the wall', walled, async t => {
  const { workspace, dir, data } = place(t)
  const open = openFolder(t)
  const copies = new Copies({
    workspace,
    data,
    folder: join(data, 'plugins/agent'),
    grants: { read: [], write: [open] },
  })
  const seen = join(open, 'seen')
  const ran = join(open, 'ran')
  writeFileSync(seen, '')
  // Outside the wall the data folder has files of groups; inside it has only git dirs.
  const spy = join(open, 'spy')
  writeFileSync(
    spy,
    `#!/bin/sh\necho "$0 $*" >> '${ran}'\n[ -e '${data}/plugins' ] && echo "$0 $*" >> '${seen}'\ncat\nexit 0\n`,
  )
  chmodSync(spy, 0o755)
  for (const hook of [
    'pre-commit',
    'post-commit',
    'post-checkout',
    'reference-transaction',
    'pre-rebase',
    'post-rewrite',
    'post-index-change',
  ]) {
    symlinkSync(spy, join(workspace, '.git/hooks', hook))
  }
  const settings = {
    'filter.f.clean': spy,
    'filter.f.smudge': spy,
    'merge.m.driver': `${spy} %O %A %B`,
    'diff.external': spy,
    'gpg.program': spy,
    'core.editor': spy,
    'commit.gpgSign': 'true',
    'core.hooksPath': join(workspace, '.git/hooks'),
    'core.fsmonitor': spy,
  }
  const head = git(workspace, 'commit-tree', '-p', 'HEAD', '-m', 'third', 'HEAD^{tree}')
  for (const [name, value] of Object.entries(settings)) git(workspace, 'config', name, value)
  mkdirSync(join(workspace, '.git/info'), { recursive: true })
  writeFileSync(join(workspace, '.git/info/attributes'), '* filter=f merge=m\n')
  const repos = await copies.ensure('c-1', [])
  writeFileSync(join(dir, 'a b ü.txt'), 'mine\n')
  await copies.commitRest('c-1', repos)
  writeFileSync(join(workspace, '.git/refs/heads/main'), `${head}\n`)
  t.match(await copies.sync('c-1', repos), { commits: 1, blocked: { length: 0 } })
  await copies.checkpoint('c-1', repos)
  await copies.ensure('c-1', repos)
  await copies.remove('c-1', repos)
  t.equal(readFileSync(seen, 'utf8'), '')
  t.notMatch(
    readFileSync(ran, 'utf8'),
    /hooks|^\S+ -?\d/m,
    'filters ran only behind the wall; hooks and the file monitor did not run',
  )
})
