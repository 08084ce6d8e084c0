import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { inGit, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { layTraps, workspaceWorld } from './support.js'

const inodes = (folder: string): number =>
  execFileSync('find', [folder], { encoding: 'utf8', maxBuffer: 1 << 28 }).split('\n').length - 1

void t.test('deleting, restoring, moving and copying', async t => {
  const { daemon, as, ask } = await workspaceWorld(t, {
    files: { 'a.md': 'one\n', 'src/b.ts': 'b', 'docs2/c.md': 'c' },
  })
  const { client, workspace } = daemon
  layTraps(workspace, join(daemon.data, '..', 'outside'))
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })

  await t.test('viewers and tokens change nothing', async t => {
    const { token } = await daemon.token('land')
    for (const [method, path, body] of [
      ['DELETE', '/workspace/entry', { path: 'a.md' }],
      ['POST', '/workspace/restore', { id: 'x' }],
      ['POST', '/workspace/move', { from: 'a.md', to: 'b.md' }],
      ['POST', '/workspace/copy', { from: 'a.md', to: 'b.md' }],
    ] as const) {
      t.equal((await ask('col', path, method, body)).status, 403, path)
      const headers = { 'x-sandbox-control': token, 'content-type': 'application/json' }
      t.equal((await fetch(daemon.url + path, { method, headers, body: JSON.stringify(body) })).status, 403, path)
    }
    t.equal((await fetch(`${daemon.url}/workspace/trash`)).status, 401)
  })

  await t.test('a deleted repository comes back with its git, its files and nothing changed', async t => {
    makeWorkspace(
      join(workspace, 'lib'),
      Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`d${at % 9}/${at}`, 'x'])),
    )
    const before = inodes(join(workspace, 'lib'))
    const { trashId } = await client.call('DELETE /workspace/entry', { path: 'lib' })
    t.notOk(existsSync(join(workspace, 'lib')))
    const { items, bytes } = await client.call('GET /workspace/trash', {})
    t.match(items, exactly({ id: trashId, path: 'lib', type: 'dir', by: 'owner@sandbox.local' }))
    t.ok(items[0]!.files >= 300 && bytes >= 300)
    t.match(await client.call('POST /workspace/restore', { id: trashId! }), { path: 'lib' })
    t.match(await client.call('POST /workspace/restore', { id: trashId! }), { path: 'lib' }, 'and again')
    t.equal(inodes(join(workspace, 'lib')), before)
    t.equal(inGit(join(workspace, 'lib'), 'status', '--porcelain'), '')
    t.same((await client.call('GET /workspace/trash', {})).items, [])
    t.notMatch(inGit(workspace, 'status', '--porcelain'), /\.sandbox/, 'the trash is in no commit')
  })

  await t.test('a restore overwrites nothing', async t => {
    const { trashId } = await client.call('DELETE /workspace/entry', { path: 'a.md' })
    writeFileSync(join(workspace, 'a.md'), 'new')
    t.match(await refusalOf(() => client.call('POST /workspace/restore', { id: trashId! })), { status: 409 })
    t.match(await client.call('POST /workspace/restore', { id: trashId!, to: 'back/here/a.md' }), {
      path: 'back/here/a.md',
    })
    t.equal(readFileSync(join(workspace, 'a.md'), 'utf8'), 'new')
    t.match(await refusalOf(() => client.call('POST /workspace/restore', { id: 'nothing' })), { status: 404 })
  })

  await t.test('deleting a link keeps its target, and deleting a missing path succeeds', async t => {
    await client.call('DELETE /workspace/entry', { path: 'out' })
    t.ok(existsSync(join(daemon.data, '..', 'outside/secret')))
    t.same(await client.call('DELETE /workspace/entry', { path: 'nothing/here' }), { ok: true })
    t.same(await client.call('DELETE /workspace/entry', { path: 'broken', permanent: true }), { ok: true })
    t.notOk(lstatSync(join(workspace, 'broken'), { throwIfNoEntry: false }))
  })

  await t.test('protected paths cannot be deleted', async t => {
    mkdirSync(join(workspace, 'lib/.git'), { recursive: true })
    const refused: [number, string][] = [
      [400, '.'],
      [400, '../x'],
      [400, '/etc'],
      [404, '.git'],
      [404, '.git/config'],
      [404, '.sandbox'],
      [404, '.sandbox/local/trash'],
      [404, '.Sandbox'],
      [409, 'lib/.git'],
      [409, 'lib/.git/config'],
    ]
    for (const [status, path] of refused)
      t.match(await refusalOf(() => client.call('DELETE /workspace/entry', { path })), { status }, path)
    writeFileSync(join(workspace, 'lib/.git/index.lock'), '')
    t.match(await refusalOf(() => client.call('DELETE /workspace/entry', { path: 'lib' })), {
      status: 409,
      message: /git is at work/,
    })
    t.ok(existsSync(join(workspace, 'lib')))
  })

  await t.test('the trash is paged, newest first, and shows people what lies in their areas', async t => {
    for (const path of ['docs/a.md', 'docs2/c.md', 'src/b.ts']) await client.call('DELETE /workspace/entry', { path })
    const first = await client.call('GET /workspace/trash', { limit: 2 })
    t.match(
      first.items.map(({ path }) => path),
      exactly('src/b.ts', 'docs2/c.md'),
    )
    const next = await client.call('GET /workspace/trash', { before: first.before! })
    t.equal(next.items[0]!.path, 'docs/a.md')
    t.match((await as('ann').call('GET /workspace/trash', {})).items, exactly({ path: 'docs/a.md' }))
    t.equal((await ask('ann', '/workspace/trash?before=x')).status, 400)
  })

  await t.test('a move creates the folders it needs and replaces nothing unless asked', async t => {
    writeFileSync(join(workspace, 'one'), '1')
    writeFileSync(join(workspace, 'two'), '2')
    await client.call('POST /workspace/move', { from: 'one', to: 'one' })
    await client.call('POST /workspace/move', { from: 'one', to: 'x/y/one' })
    t.equal(readFileSync(join(workspace, 'x/y/one'), 'utf8'), '1')
    const refused: [number, { from: string; to: string; overwrite?: boolean }][] = [
      [400, { from: 'x', to: 'x/y/z' }],
      [400, { from: 'x', to: '../x' }],
      [400, { from: 'x', to: 'a\nb' }],
      [404, { from: 'gone', to: 'z' }],
      [404, { from: 'x', to: '.git/x' }],
      [404, { from: '.git', to: 'z' }],
      [409, { from: 'x/y/one', to: 'two' }],
      [409, { from: 'two', to: 'x', overwrite: true }],
      [409, { from: 'two', to: 'lib/.git/x' }],
    ]
    for (const [status, input] of refused)
      t.match(await refusalOf(() => client.call('POST /workspace/move', input)), { status }, JSON.stringify(input))
    await client.call('POST /workspace/move', { from: 'x/y/one', to: 'two', overwrite: true })
    t.equal(readFileSync(join(workspace, 'two'), 'utf8'), '1')
    t.match((await client.call('GET /workspace/trash', { limit: 1 })).items, exactly({ path: 'two' }))
  })

  await t.test('what was looked at is deleted and replaced, and git may look at its repository meanwhile', async t => {
    const stamp = async (path: string) => (await client.call('DELETE /workspace/entry', { path, mode: 'check' })).stamp!
    mkdirSync(join(workspace, 'seen/deep'), { recursive: true })
    for (const name of ['a', 'deep/b']) writeFileSync(join(workspace, 'seen', name), name)
    execFileSync('git', ['init', '-q', join(workspace, 'seen/repo')])
    const look = { path: 'seen', mode: 'check' } as const
    const seen = await client.call('DELETE /workspace/entry', look)
    t.match(seen, { ok: true, stamp: /^[\w-]{22}$/ })
    execFileSync('git', ['-C', join(workspace, 'seen/repo'), 'status', '--porcelain'])
    t.same(await client.call('DELETE /workspace/entry', look), seen, 'a look changes nothing')
    const replacing = { from: 'seen/a', to: 'seen/deep/b', overwrite: true } as const
    t.match(await client.call('POST /workspace/move', { ...replacing, mode: 'check' }), {
      stamp: await stamp('seen/deep/b'),
    })
    const free = await client.call('POST /workspace/copy', { ...replacing, to: 'no/where/b', mode: 'check' })
    t.same([free, existsSync(join(workspace, 'no'))], [{ ok: true, files: 1, bytes: 1, stamp: 'absent' }, false])
    await client.call('POST /workspace/copy', { ...replacing, expect: await stamp('seen/deep/b') })
    t.equal(readFileSync(join(workspace, 'seen/deep/b'), 'utf8'), 'a')
    await client.call('POST /workspace/move', { ...replacing, expect: await stamp('seen/deep/b') })
    t.notOk(existsSync(join(workspace, 'seen/a')))
    execFileSync('git', ['-C', join(workspace, 'seen/repo'), 'commit', '-q', '--allow-empty', '-m', 'new'], {
      env: {
        ...process.env,
        GIT_AUTHOR_NAME: 'a',
        GIT_AUTHOR_EMAIL: 'a@b',
        GIT_COMMITTER_NAME: 'a',
        GIT_COMMITTER_EMAIL: 'a@b',
      },
    })
    t.match(
      await refusalOf(() => client.call('DELETE /workspace/entry', { path: 'seen', expect: seen.stamp! })),
      { status: 409, message: /is not what was seen: look at it again/ },
      'a commit is work',
    )
    await client.call('DELETE /workspace/entry', { path: 'seen', expect: await stamp('seen') })
    t.notOk(existsSync(join(workspace, 'seen')))
    t.same(await client.call('DELETE /workspace/entry', { path: 'seen', expect: seen.stamp! }), { ok: true })
  })

  await t.test('a copy keeps modes, times and links, and its git data is independent', async t => {
    mkdirSync(join(workspace, 'from/sub'), { recursive: true })
    writeFileSync(join(workspace, 'from/run.sh'), '#!/bin/sh\n', { mode: 0o755 })
    writeFileSync(join(workspace, 'from/.git'), 'gitdir: ../elsewhere\n')
    execFileSync('ln', ['-s', 'run.sh', join(workspace, 'from/link')])
    execFileSync('touch', ['-d', '2020-01-02T03:04:05Z', join(workspace, 'from/run.sh')])
    const { files } = await client.call('POST /workspace/copy', { from: 'from', to: 'made/copy' })
    t.equal(files, 3)
    const { mode, mtimeMs } = statSync(join(workspace, 'made/copy/run.sh'))
    t.same([mode & 0o777, mtimeMs], [0o755, Date.parse('2020-01-02T03:04:05Z')])
    t.equal(readlinkSync(join(workspace, 'made/copy/link')), 'run.sh')
    t.notOk(existsSync(join(workspace, 'made/copy/.git')))
    t.ok(existsSync(join(workspace, 'made/copy/sub')))
    t.match(await refusalOf(() => client.call('POST /workspace/copy', { from: 'from', to: 'made/copy' })), {
      status: 409,
    })
    t.match(await refusalOf(() => client.call('POST /workspace/copy', { from: 'from', to: 'from/x' })), { status: 400 })
    execFileSync('mkfifo', [join(workspace, 'from/pipe')])
    t.match(await refusalOf(() => client.call('POST /workspace/copy', { from: 'from', to: 'other' })), { status: 422 })
    t.notOk(existsSync(join(workspace, 'other')))
    t.notMatch(execFileSync('find', [workspace, '-name', '.sandbox-write-*'], { encoding: 'utf8' }), /./)
  })
})
