import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { commitAll, gitWorld, put, repoAt, tryGit } from './support.js'

const world = await gitWorld(t, { 'README.md': '# work\n' }, ['history', 'activity'])
const { client, workspace, daemon, as } = world
const status = (at: string) => inGit(at, 'status', '--porcelain', '-uall')
let made = 0

/** A repository of its own for one test. */
const fresh = (files: { readonly [path: string]: string }) => {
  const repo = `repo${made++}`
  const at = join(workspace, repo)
  repoAt(at, files)
  return { repo, at }
}

t.test('writes are for maintainers and not for tokens', async t => {
  const { repo } = fresh({ f: '1\n' })
  for (const path of ['stage', 'unstage', 'discard', 'commit']) {
    const init = {
      method: 'POST',
      body: JSON.stringify({ paths: ['f'], message: 'm' }),
      headers: { 'content-type': 'application/json' },
    }
    const url = `${daemon.url}/git/${repo}/${path}`
    t.equal((await fetch(url, init)).status, 401, path)
    for (const scope of ['read', 'drive', 'land'] as const) {
      const { token } = await daemon.token(scope, `${scope}-${path}`)
      t.equal((await fetch(url, { ...init, headers: { ...init.headers, 'x-sandbox-control': token } })).status, 403)
    }
  }
  t.match(await refusalOf(() => as('col').call('POST /git/{repo}/stage', { repo, paths: ['f'] })), { status: 403 })
})

t.test('stage puts paths and folders as they are on disk, and unstage takes them out again', async t => {
  const { repo, at } = fresh({ f: '1\n', gone: 'g\n', 'dir/a': 'a\n', '.gitignore': 'ignored\n' })
  put(at, { f: '2\n', 'dir/b': 'b\n', ':(top)*': 'x\n', '-dash': 'd\n', ignored: 'i\n' })
  rmSync(join(at, 'gone'))
  repoAt(join(at, 'dir/inner'), { i: 'i\n' })
  await client.call('POST /git/{repo}/stage', { repo, paths: ['f', 'gone', 'dir', ':(top)*', '-dash'] })
  t.equal(status(at), 'A  -dash\nA  :(top)*\nA  dir/b\nM  f\nD  gone\n?? dir/inner/\n')
  await client.call('POST /git/{repo}/unstage', { repo, paths: ['f', 'dir', '-dash'] })
  t.equal(status(at), 'A  :(top)*\n M f\nD  gone\n?? -dash\n?? dir/b\n?? dir/inner/\n')
  t.equal(readFileSync(join(at, 'f'), 'utf8'), '2\n')
  for (const [code, path] of [
    [404, 'none'],
    [404, '.git/config'],
    [400, '../x'],
    [422, 'ignored'],
  ] as const)
    t.match(
      await refusalOf(() => client.call('POST /git/{repo}/stage', { repo, paths: [path] })),
      { status: code },
      path,
    )
})

t.test('a conflict is resolved by taking a side, and the commit concludes the merge', async t => {
  const { repo, at } = fresh({ f: 'base\n', d: 'd\n' })
  inGit(at, 'checkout', '-q', '-b', 'side')
  put(at, { f: 'theirs\n' })
  rmSync(join(at, 'd'))
  commitAll(at, 'side')
  inGit(at, 'checkout', '-q', 'main')
  put(at, { f: 'ours\n', d: 'changed\n' })
  commitAll(at, 'main')
  t.notOk(tryGit(at, 'merge', 'side').ok)
  t.match(await refusalOf(() => client.call('POST /git/{repo}/commit', { repo, message: 'm' })), { status: 409 })
  t.match(await refusalOf(() => client.call('POST /git/{repo}/unstage', { repo, paths: ['f'] })), { status: 409 })
  t.match(await refusalOf(() => client.call('POST /git/{repo}/discard', { repo })), { status: 409 })
  await client.call('POST /git/{repo}/stage', { repo, paths: ['f', 'd'], take: 'theirs' })
  t.equal(readFileSync(join(at, 'f'), 'utf8'), 'theirs\n')
  t.notOk(existsSync(join(at, 'd')))
  t.match(await refusalOf(() => client.call('POST /git/{repo}/stage', { repo, paths: ['f'], take: 'ours' })), {
    status: 422,
  })
  const { committed, head, changes } = await client.call('POST /git/{repo}/commit', { repo, message: 'merged' })
  t.match({ committed, head }, { committed: true, head: inGit(at, 'rev-parse', 'HEAD').trim() })
  t.equal(inGit(at, 'log', '-1', '--format=%P').trim().split(' ').length, 2)
  t.notOk('operation' in changes!)
})

t.test('taking a side of a conflict leaves what git leaves', async t => {
  for (const take of ['ours', 'theirs'] as const) {
    const { repo, at } = fresh({ f: 'base\n', deep: 'base\n' })
    inGit(at, 'checkout', '-q', '-b', 'side')
    put(at, { f: 'theirs\n', deep: 'theirs\n', added: 'theirs\n' })
    commitAll(at, 'side')
    inGit(at, 'checkout', '-q', 'main')
    put(at, { f: 'ours\n', deep: 'ours\n', added: 'ours\n' })
    commitAll(at, 'main')
    t.notOk(tryGit(at, 'merge', 'side').ok)
    const twin = `${at}-twin`
    cpSync(at, twin, { recursive: true })
    const paths = ['f', 'deep', 'added']
    inGit(twin, 'checkout', '-q', `--${take}`, ...paths)
    inGit(twin, 'add', ...paths)
    await client.call('POST /git/{repo}/stage', { repo, paths, take })
    t.equal(inGit(at, 'ls-files', '-s'), inGit(twin, 'ls-files', '-s'), take)
    t.equal(status(at), status(twin))
    for (const path of paths) t.equal(readFileSync(join(at, path), 'utf8'), `${take}\n`)
    rmSync(twin, { recursive: true })
  }
})

t.test('commit: staged changes, paths, everything, amend, nothing, and the author', async t => {
  const { repo, at } = fresh({ f: '1\n', g: '1\n' })
  const commit = (input: object) => client.call('POST /git/{repo}/commit', { repo, message: 'm', ...input })
  t.match(await commit({}), { committed: false })
  put(at, { f: '2\n', g: '2\n', new: 'n\n' })
  writeFileSync(Buffer.concat([Buffer.from(`${at}/latin-`), Buffer.from([0xe9])]), 'l')
  const one = await commit({ paths: ['f'], message: '# one\n\nbody' })
  t.equal(inGit(at, 'log', '-1', '--format=%B|%an').trim(), '# one\n\nbody\n|owner@sandbox.local')
  t.equal(inGit(at, 'show', '--name-only', '--format=').trim(), 'f')
  t.same(
    one.changes!.unstaged.map(({ path }) => path),
    ['g', 'latin-\ufffd', 'new'],
  )
  inGit(at, 'config', 'user.name', 'Repo <x>')
  inGit(at, 'config', 'user.email', 'repo@example.org')
  await commit({ all: true, message: 'all' })
  t.equal(status(at), '')
  t.equal(inGit(at, 'log', '-1', '--format=%an %ae').trim(), 'Repo x repo@example.org')
  const before = inGit(at, 'rev-parse', 'HEAD~1').trim()
  await commit({ amend: true, message: 'again' })
  t.equal(inGit(at, 'rev-parse', 'HEAD~1').trim(), before)
  for (const [code, input] of [
    [400, { all: true, paths: ['f'] }],
    [400, { message: ' \n' }],
    [409, { expectHead: before }],
    [404, { paths: ['none'] }],
  ] as const)
    t.match(await refusalOf(() => commit(input)), { status: code }, JSON.stringify(input))
  const { events } = await client.call('GET /activity', { limit: 10 })
  t.ok(events.some(({ type }) => type === 'git.committed'))
})

t.test('paths alone: what else is staged stays staged', async t => {
  const { repo, at } = fresh({ f: '1\n', gone: 'x\n', ':(top)odd*': 'o\n', odd1: 'o\n' })
  put(at, { f: '2\n', 'new/file': 'n\n', ':(top)odd*': 'changed\n', odd1: 'mine\n', 'staged.txt': 's\n' })
  inGit(at, 'add', 'staged.txt', 'odd1')
  rmSync(join(at, 'gone'))
  const paths = ['f', 'gone', 'new/file', ':(top)odd*']
  const alone = await client.call('POST /git/{repo}/commit', { repo, message: 'm', paths, only: true })
  t.match(alone, { committed: true })
  t.same(inGit(at, 'show', '--name-only', '--format=').trim().split('\n').sort(), [...paths].sort())
  t.equal(status(at), 'M  odd1\nA  staged.txt\n')
  const again = await client.call('POST /git/{repo}/commit', { repo, message: 'm', paths: ['f'], only: true })
  t.match(again, { committed: false }, 'what is staged besides does not count')
  t.match(await refusalOf(() => client.call('POST /git/{repo}/commit', { repo, message: 'm', only: true })), {
    status: 400,
    message: 'only: expected with paths, found without',
  })
})

t.test('commits of the owner of this machine have the name of their own git settings', async t => {
  const folder = folderOf(t)
  const at = join(folder, 'workspace')
  makeWorkspace(at)
  writeFileSync(join(folder, '.gitconfig'), '[user]\n\tname = Ann Example\n\temail = ann@example.org\n')
  const own = await spawnDaemon(t, { workspace: at, data: join(folder, 'data'), env: { HOME: folder } })
  put(at, { f: '1\n' })
  await own.client.call('POST /git/{repo}/commit', { repo: 'root', message: 'm', all: true })
  t.equal(inGit(at, 'log', '-1', '--format=%an <%ae> %cn').trim(), 'Ann Example <ann@example.org> Ann Example')
})

t.test('a hook that refuses is named, and the index is as before; hooks run behind the wall', async t => {
  const { repo, at } = fresh({ f: '1\n' })
  const hook = join(at, '.git/hooks/pre-commit')
  writeFileSync(hook, '#!/bin/sh\necho "f: line 1: no twos" >&2\nexit 1\n')
  chmodSync(hook, 0o755)
  put(at, { f: '2\n', new: 'n\n' })
  const before = status(at)
  const refused = await refusalOf(() => client.call('POST /git/{repo}/commit', { repo, message: 'm', all: true }))
  t.match(refused, { status: 409, message: 'f: line 1: no twos' })
  t.equal(status(at), before)
  writeFileSync(hook, '#!/bin/sh\nexit 1\n')
  const silent = await refusalOf(() => client.call('POST /git/{repo}/commit', { repo, message: 'm', all: true }))
  t.match(silent, { status: 409, message: `a hook of ${repo} refused the commit and said nothing` })
  writeFileSync(hook, `#!/bin/sh\nls ${daemon.data} > seen 2>&1; echo ran >> seen\n`)
  t.match(await client.call('POST /git/{repo}/commit', { repo, message: 'm', paths: ['f'] }), { committed: true })
  t.match(readFileSync(join(at, 'seen'), 'utf8'), /^(?!.*store\.sqlite)[\s\S]*ran\n$/)
})

t.test('two commits at once are two commits, and git finds no fault', async t => {
  const { repo, at } = fresh({ f: '1\n' })
  put(at, { a: 'a\n', b: 'b\n', c: 'c\n' })
  const done = await Promise.all(
    ['a', 'b', 'c'].map(path => client.call('POST /git/{repo}/commit', { repo, message: path, paths: [path] })),
  )
  t.match(
    done.map(({ committed }) => committed),
    exactly(true, true, true),
  )
  t.equal(inGit(at, 'rev-list', '--count', 'HEAD').trim(), '4')
  t.equal(inGit(at, 'fsck', '--strict', '--no-dangling'), '')
})

t.test('discard removes the named changes, and its saved point restores all of them', async t => {
  const { repo, at } = fresh({ f: '1\n', old: 'x\n'.repeat(9), kept: 'k\n', '.gitignore': 'ignored\n' })
  put(at, { f: '2\n', 'deep/new': 'n\n', other: 'o\n', ignored: 'i\n' })
  inGit(at, 'mv', 'old', 'moved')
  const { point } = await client.call('POST /git/{repo}/discard', { repo, paths: ['f', 'moved', 'deep'] })
  t.equal(status(at), '?? other\n')
  t.notOk(existsSync(join(at, 'deep')))
  await client.call('POST /history/restore', { id: point!, scope: repo, paths: ['deep', 'f'] })
  t.equal(readFileSync(join(at, 'deep/new'), 'utf8'), 'n\n')
  t.equal(readFileSync(join(at, 'f'), 'utf8'), '2\n')
  for (let file = 0; file < 1000; file++) put(at, { [`many/${file}`]: `${file}\n` })
  const all = await client.call('POST /git/{repo}/discard', { repo })
  t.equal(status(at), '')
  t.equal(readFileSync(join(at, 'ignored'), 'utf8'), 'i\n')
  await client.call('POST /history/restore', { id: all.point!, scope: repo })
  t.equal(readFileSync(join(at, 'many/999'), 'utf8'), '999\n')
  t.equal(
    inGit(at, 'status', '--porcelain', '-uall')
      .split('\n')
      .filter(line => line.includes('many/')).length,
    1000,
  )
})

t.test('discard follows no link out of the workspace', async t => {
  const { repo, at } = fresh({ 'dir/f': '1\n' })
  const outside = join(daemon.data, '../outside')
  put(outside, { f: 'mine\n' })
  rmSync(join(at, 'dir'), { recursive: true })
  symlinkSync(outside, join(at, 'dir'))
  await client.call('POST /git/{repo}/discard', { repo })
  t.equal(readFileSync(join(outside, 'f'), 'utf8'), 'mine\n')
  t.equal(readFileSync(join(at, 'dir/f'), 'utf8'), '1\n')
})

t.test('a lock file of a running process is waited for 10 s and then named, with the process, within 11 s', async t => {
  const { repo, at } = fresh({ f: '1\n' })
  put(at, { f: '2\n' })
  const holder = spawn('sh', ['-c', 'exec 3>.git/index.lock; echo; exec sleep 60'], { cwd: at })
  t.teardown(() => holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  const lock = { file: 'index.lock', pid: holder.pid, stale: false }
  const begun = performance.now()
  const refused = await refusalOf(() => client.call('POST /git/{repo}/stage', { repo, paths: ['f'] }))
  t.ok(performance.now() - begun < 11_000)
  t.match(refused, { status: 409, detail: { fields: { lock: { ...lock, command: 'sleep 60' } } } })
  t.match(await client.call('GET /git/{repo}/operation', { repo }), { lock })
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  rmSync(join(at, '.git/index.lock'))
  t.same(await client.call('POST /git/{repo}/stage', { repo, paths: ['f'] }), { ok: true })
})

t.test('a text is staged instead of the file on disk if it is based on the staged version', async t => {
  const { repo, at } = fresh({ f: '1\n2\n', bin: 'x' })
  const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')
  put(at, { f: '1 changed\n2 changed\n', fresh: 'new\n' })
  chmodSync(join(at, 'f'), 0o755)
  const stage = (path: string, content: string, base: string, more: object = {}) =>
    client.call('POST /git/{repo}/stage', { repo, paths: [path], content, baseHash: hashOf(base), ...more })
  await stage('f', '1 changed\n2\n', '1\n2\n')
  t.equal(inGit(at, 'show', ':f'), '1 changed\n2\n')
  t.equal(readFileSync(join(at, 'f'), 'utf8'), '1 changed\n2 changed\n')
  await stage('fresh', '', '')
  t.equal(inGit(at, 'show', ':fresh'), '')
  t.match(await refusalOf(() => stage('f', 'other', '1\n2\n')), {
    status: 409,
    detail: { fields: { hash: hashOf('1 changed\n2\n') } },
  })
  t.match(await refusalOf(() => stage('none', 'x', '')), { status: 404 })
  t.match(await refusalOf(() => stage('f', 'x', '', { take: 'ours' })), { status: 400 })
  t.match(await refusalOf(() => stage('f', 'x', '', { paths: ['f', 'bin'] })), { status: 400 })
  t.match(await refusalOf(() => client.call('POST /git/{repo}/stage', { repo, paths: ['f'], content: 'x' })), {
    status: 400,
  })
  symlinkSync('f', join(at, 'link'))
  t.match(await refusalOf(() => stage('link', 'x', '')), { status: 422 })
  t.equal(inGit(at, 'show', ':f'), '1 changed\n2\n', 'refused texts change nothing')
})
