import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { git, GitFailure, gitVersion, type GitOptions } from '../../../../sdk/node/programs/git.js'

const IDENTITY = { name: 'A', email: 'a@example.com' }

const repository = async (t: Test) => {
  const root = realpathSync(t.testdir({ work: { 'a.txt': 'one\n', 'ü b.txt': '' }, data: {} }))
  const dir = join(root, 'work')
  await git(dir, ['init', '-q', '-b', 'main'])
  await git(dir, ['add', '-A'])
  await git(dir, ['commit', '-qm', 'first'], { identity: IDENTITY })
  return { root, dir, data: join(root, 'data') }
}

t.test('git returns exit code, bytes and error text', async t => {
  const { dir } = await repository(t)
  t.equal((await git(dir, ['log', '--format=%an %s'])).text, 'A first\n')
  t.equal((await git(dir, ['ls-files'])).text, 'a.txt\nü b.txt\n')
  t.equal((await git(dir, ['rev-parse', '--verify', '-q', 'none'], { ok: [0, 1] })).code, 1)
  t.match(await gitVersion(), /^\d+\.\d+/)
})

t.test('an unexpected exit code is thrown with the message of git', async t => {
  const { dir } = await repository(t)
  const error = await git(dir, ['rev-parse', '--verify', 'none']).catch((error: unknown) => error)
  t.type(error, GitFailure)
  t.match(error, { code: 128, message: /^git rev-parse: fatal: Needed a single revision/ })
  await t.rejects(
    git(dir, ['-c', 'user.name=x', 'rev-parse', '--verify', 'none']),
    { message: /^git rev-parse: / },
    'options before it are not the command',
  )
  await t.rejects(git(dir, ['log', '-p'], { maxBytes: 10 }), { message: /more than 10 bytes/ })
})

t.test('a folder inside another repository is not a repository', async t => {
  const { dir } = await repository(t)
  mkdirSync(join(dir, 'sub'))
  await t.rejects(git(join(dir, 'sub'), ['rev-parse', '--git-dir']), { message: /not a git repository/ })
})

t.test('no program that the repository names runs', async t => {
  const { dir, root } = await repository(t)
  const mark = join(root, 'ran')
  const program = join(root, 'program')
  writeFileSync(program, `#!/bin/sh\necho "$0 $@" >> '${mark}'\n`)
  chmodSync(program, 0o755)
  const hooks = join(dir, '.git/hooks')
  for (const hook of ['pre-commit', 'post-commit', 'reference-transaction', 'post-checkout', 'post-index-change']) {
    rmSync(join(hooks, hook), { force: true })
    symlinkSync(program, join(hooks, hook))
  }
  const settings = {
    'core.fsmonitor': program,
    'core.hooksPath': hooks,
    'commit.gpgSign': 'true',
    'gpg.program': program,
    'core.editor': program,
    'diff.external': program,
    'diff.x.command': program,
    'diff.x.textconv': program,
    'core.pager': program,
    'pager.log': 'true',
    'core.sshCommand': program,
    'credential.helper': `!${program}`,
    'remote.origin.url': `ext::${program}`,
    'core.askPass': program,
    'remote.ssh.url': 'ssh://example.invalid/x',
    'remote.file.url': dir,
    'remote.file.uploadpack': program,
    'extensions.partialClone': 'file',
    'remote.file.promisor': 'true',
    'log.showSignature': 'true',
    'core.repositoryFormatVersion': '1',
  }
  for (const [name, value] of Object.entries(settings)) await git(dir, ['config', name, value])
  writeFileSync(join(dir, '.gitattributes'), '* diff=x\n')
  writeFileSync(join(dir, 'a.txt'), 'two\n')
  await git(dir, ['status', '--porcelain'])
  await git(dir, ['add', '-A'])
  await git(dir, ['diff', '--cached'])
  await git(dir, ['commit', '-qm', 'second'], { identity: IDENTITY })
  for (const args of [
    ['log', '-p'],
    ['show', 'HEAD'],
    ['blame', 'a.txt'],
    ['diff-tree', '-p', 'HEAD~1', 'HEAD'],
    ['format-patch', '--stdout', '-1'],
    ['-c', 'user.name=x', 'diff', 'HEAD~1'],
  ])
    await git(dir, args)
  for (const remote of ['origin', 'ssh', 'file']) await t.rejects(git(dir, ['fetch', remote]), /not allowed/)
  await t.rejects(git(dir, ['cat-file', '-p', '1234567890123456789012345678901234567890']))
  t.notOk(existsSync(mark))
})

t.test('behind the wall a filter of the repository runs without the data folder', async t => {
  const { dir, data } = await repository(t)
  writeFileSync(join(data, 'secret'), 'x')
  await git(dir, ['config', 'filter.x.clean', `ls -A '${data}' > '${join(dir, '.git/seen')}'; cat`])
  writeFileSync(join(dir, '.gitattributes'), '* filter=x\n')
  writeFileSync(join(dir, 'a.txt'), 'two\n')
  await git(dir, ['add', '-A'], { wall: { workspace: dir, data } })
  t.ok(existsSync(join(dir, '.git/seen')), 'the filter ran')
  t.equal(
    (await git(dir, ['hash-object', '--no-filters', join(dir, '.git/seen')])).text,
    'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n',
    'the filter found nothing',
  )
})

t.test('a git that reads an index, and what it starts, has a limit of memory', async t => {
  const { dir, data } = await repository(t)
  writeFileSync(join(dir, '.gitattributes'), '*.limit filter=limit\n')
  await git(dir, ['config', 'filter.limit.clean', 'ulimit -d > "$(git rev-parse --git-dir)/limit"; cat'])
  const ways: { readonly [name: string]: GitOptions } = {
    walled: { wall: { workspace: dir, data } },
    own: { env: { GIT_INDEX_FILE: join(data, 'index') } },
  }
  for (const [name, how] of Object.entries(ways)) {
    writeFileSync(join(dir, `${name}.limit`), 'x\n')
    await git(dir, ['add', `${name}.limit`], how)
    const limit = readFileSync(join(dir, '.git/limit'), 'utf8').trim()
    t.match(limit, /^\d+$/, `${name}: ${limit}`)
    rmSync(join(dir, '.git/limit'))
  }
})

t.test('a blocked git is ended after a time', async t => {
  const { dir } = await repository(t)
  rmSync(join(dir, '.git/HEAD'))
  execFileSync('mkfifo', [join(dir, '.git/HEAD')])
  await t.rejects(git(dir, ['status'], { timeoutMs: 100 }), { message: 'git status: did not end within 0.1 s' })
})

t.test('a git that waits for another machine reads no working tree, and no pipe there ends', async t => {
  const { dir } = await repository(t)
  execFileSync('mkfifo', [join(dir, '.gitignore')])
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const reader = spawn('cat', [join(dir, '.gitignore')])
  const ended = once(reader, 'exit')
  t.teardown(() => {
    reader.kill('SIGKILL')
    silent.close()
  })
  const how = { env: { GIT_ALLOW_PROTOCOL: 'git' }, timeoutMs: 6000 }
  await t.rejects(git(dir, ['ls-remote', `git://127.0.0.1:${port}/x`], how), { message: /did not end within 6 s/ })
  t.equal(reader.exitCode, null, 'who reads the pipe still waits')
  const own = git(dir, ['status', '--porcelain'])
  await Promise.all([own, ended])
  t.pass('a git that reads the working tree is let through, and the reader with it')
})
