import { existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, inGit } from '../../support/daemon.js'
import { bareCopy, gitServer } from '../../support/servers/git-server.js'
import { exactly } from '../../support/lists.js'
import { commitAll, gitWorld, put, repoAt } from './support.js'

const { client, workspace, daemon, as } = await gitWorld(t, { 'README.md': '# work\n' }, ['activity', 'history'])
const server = await gitServer(t, folderOf(t))
const source = folderOf(t)
repoAt(source, { f: '1\n', 'dir/g': 'g\n' })
put(source, { f: '2\n' })
const tip = commitAll(source, 'two')
inGit(source, 'branch', 'side', 'HEAD~1')
bareCopy(source, join(server.folder, 'shop.git'))
inGit(join(server.folder, 'shop.git'), 'config', 'uploadpack.allowFilter', 'true')
const url = `${server.url}/shop.git`

const gitdirs = () => {
  const folder = join(daemon.data, 'gitdirs')
  return existsSync(folder) ? readdirSync(folder) : []
}
const rev = (at: string, name: string) => inGit(at, 'rev-parse', name).trim()
const pull = (name: string) => client.call('POST /git/{repo}/pull', { repo: name })

t.test('cloning, starting and syncing are for maintainers and not for tokens', async t => {
  for (const [path, body] of [
    ['repos', { name: 'x', cloneUrl: url }],
    ['repos/init', { path: 'x' }],
    ['sync', {}],
  ] as const) {
    const send = (headers: { [name: string]: string }) =>
      fetch(`${daemon.url}/workspace/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
    t.equal((await send({})).status, 401, path)
    const { token } = await daemon.token('land', path.replace('/', '-'))
    t.equal((await send({ 'x-sandbox-control': token })).status, 403, path)
  }
  t.match(await refusalOf(() => as('col').call('POST /workspace/sync', {})), { status: 403 })
  t.notOk(existsSync(join(workspace, 'x')))
})

t.test('a clone is there whole, with its git dir kept by the daemon, and works on', async t => {
  const before = gitdirs().length
  t.same(await client.call('POST /workspace/repos', { name: 'shop', cloneUrl: url }), { name: 'shop', path: 'shop' })
  const at = join(workspace, 'shop')
  t.equal(readFileSync(join(at, 'f'), 'utf8'), '2\n')
  t.equal(rev(at, 'HEAD'), tip)
  t.ok(lstatSync(join(at, '.git')).isFile())
  t.equal(gitdirs().length, before + 1)
  t.equal(inGit(at, 'config', '--get', 'remote.origin.url').trim(), url)
  t.equal(inGit(at, 'status', '--porcelain'), '')
  t.same((await client.call('GET /git/repos')).repos, ['shop'])
  t.match(await client.call('GET /git/{repo}/status', { repo: 'shop' }), { branch: 'main', dirty: false, head: tip })
  put(at, { mine: 'm\n' })
  await client.call('POST /git/{repo}/commit', { repo: 'shop', message: 'mine', all: true })
  t.match(await client.call('POST /git/{repo}/push', { repo: 'shop' }), { ok: true })
  const { events } = await client.call('GET /activity', { limit: 20 })
  t.match(
    events.find(({ type }) => type === 'workspace.cloned'),
    { extra: { name: 'shop', host: 'localhost' } },
  )
  t.match(await refusalOf(() => client.call('POST /workspace/repos', { name: 'shop', cloneUrl: url })), { status: 409 })
})

t.test('a clone of a branch, of the last commit, and without older contents', async t => {
  const clone = (name: string, how: object) => client.call('POST /workspace/repos', { name, cloneUrl: url, ...how })
  await Promise.all([
    clone('side', { branch: 'side' }),
    clone('shallow', { depth: 1 }),
    clone('lean', { filter: 'blob:none' }),
  ])
  t.equal(inGit(join(workspace, 'side'), 'branch', '--show-current').trim(), 'side')
  t.equal(inGit(join(workspace, 'shallow'), 'rev-list', '--count', 'HEAD').trim(), '1')
  t.equal(readFileSync(join(workspace, 'lean/dir/g'), 'utf8'), 'g\n')
  const missing = inGit(join(workspace, 'lean'), 'rev-list', '--objects', '--missing=print', 'HEAD')
  t.match(missing, /^\?/m)
  const other = folderOf(t)
  inGit(other, 'clone', '-q', join(server.folder, 'shop.git'), '.')
  put(other, { f: '3\n' })
  const next = commitAll(other, 'three')
  inGit(other, 'push', '-q', 'origin', 'main')
  for (const name of ['shallow', 'lean']) {
    t.match(await pull(name), { ok: true, head: next }, name)
    t.equal(readFileSync(join(workspace, name, 'f'), 'utf8'), '3\n')
    put(join(workspace, name), { [name]: 'n\n' })
    await client.call('POST /git/{repo}/commit', { repo: name, message: name, all: true })
  }
  t.match(await client.call('POST /git/{repo}/push', { repo: 'lean' }), { ok: true })
})

t.test('a clone that fails leaves nothing', async t => {
  const [dirs, names] = [gitdirs(), readdirSync(workspace)]
  const clone = (order: object) =>
    refusalOf(() => client.call('POST /workspace/repos', { name: 'none', cloneUrl: url, ...order }))
  for (const [status, order] of [
    [400, { name: 'refs' }],
    [400, { name: '../x' }],
    [400, { name: 'x.lock' }],
    [400, { cloneUrl: 'ext::sh -c id' }],
    [400, { cloneUrl: '--upload-pack=touch ran' }],
    [400, { branch: '--x' }],
    [422, { cloneUrl: 'file:///etc' }],
    [424, { branch: 'absent' }],
    [424, { cloneUrl: `${server.url}/absent.git` }],
    [424, { cloneUrl: 'http://none.invalid/x.git' }],
    [424, { cloneUrl: `${daemon.url}/x.git` }],
  ] as const)
    t.match(await clone(order), { status }, JSON.stringify(order))
  t.same(gitdirs(), dirs)
  t.same(readdirSync(workspace), names)
  t.same(readdirSync(join(workspace, '.sandbox/local/clones')), [])
  t.same(readdirSync(join(daemon.data, 'git/transfers')), [])
})

t.test('a detached clone answers at once, and the stream says when it is there', async t => {
  const { client, workspace } = await daemonWith(t, ['git', 'system', 'activity'])
  const stream = await client.call('GET /events', {})
  const later = { name: 'later', cloneUrl: url, detach: true }
  t.same(await client.call('POST /workspace/repos', later), { name: 'later', path: 'later' })
  t.match(await refusalOf(() => client.call('POST /workspace/repos', later)), { status: 409 })
  for await (const event of stream) {
    if (event.kind !== 'reposChanged') continue
    t.same(event.repos, ['root', 'later'])
    break
  }
  t.ok(existsSync(join(workspace, 'later/f')))
})

t.test('a repository starts in a new folder, and in one with files, which stay', async t => {
  const made = await client.call('POST /workspace/repos/init', { path: 'new/tools', branch: 'trunk' })
  const at = join(workspace, 'new/tools')
  t.same(made, { repo: 'new/tools', path: 'new/tools', head: rev(at, 'trunk') })
  put(workspace, { 'old/a': 'a\n', 'old/.gitignore': 'b\n', 'old/b': 'b\n' })
  await client.call('POST /workspace/repos/init', { path: 'old' })
  t.equal(inGit(join(workspace, 'old'), 'ls-files'), '.gitignore\na\n')
  t.equal(inGit(join(workspace, 'old'), 'log', '--format=%s|%an').trim(), 'Start the repository|owner@sandbox.local')
  t.equal(readFileSync(join(workspace, 'old/b'), 'utf8'), 'b\n')
  mkdirSync(join(workspace, 'bare'))
  t.same(await client.call('POST /workspace/repos/init', { path: 'bare', commit: false }), {
    repo: 'bare',
    path: 'bare',
  })
  const dirs = gitdirs()
  for (const [status, order] of [
    [400, { path: '../x' }],
    [400, { path: 'fine', branch: 'a..b' }],
    [404, { path: '.sandbox/x' }],
    [409, { path: 'old' }],
    [409, { path: 'old/inner' }],
    [409, { path: 'README.md' }],
  ] as const)
    t.match(await refusalOf(() => client.call('POST /workspace/repos/init', order)), { status }, order.path)
  t.same(gitdirs(), dirs)
  t.notOk(existsSync(join(workspace, 'old/inner')))
  t.notOk(existsSync(join(workspace, 'fine')))
})

t.test('sync fast-forwards clean repositories that are behind, and reports the rest', async t => {
  const names = ['ahead', 'behind', 'dirty', 'parted', 'gone']
  bareCopy(source, join(server.folder, 'sync.git'))
  const cloneUrl = `${server.url}/sync.git`
  await Promise.all(names.map(name => client.call('POST /workspace/repos', { name, cloneUrl })))
  const other = folderOf(t)
  inGit(other, 'clone', '-q', join(server.folder, 'sync.git'), '.')
  for (const name of ['ahead', 'parted']) {
    put(join(workspace, name), { own: 'o\n' })
    commitAll(join(workspace, name), 'own')
  }
  put(join(workspace, 'dirty'), { f: 'edited\n' })
  put(other, { f: 'new\n' })
  const sha = commitAll(other, 'new')
  inGit(join(workspace, 'ahead'), 'config', 'remote.origin.url', `${server.url}/shop.git`)
  inGit(other, 'push', '-q', 'origin', 'main')
  inGit(join(workspace, 'gone'), 'config', 'remote.origin.url', `${server.url}/absent.git`)
  const asked = ['behind', 'dirty', 'parted', 'gone', 'bare']
  const { repos } = await client.call('POST /workspace/sync', { repos: asked })
  t.match(
    repos,
    exactly(
      { repo: 'behind', status: 'updated', head: sha, ahead: 0, behind: 0 },
      { repo: 'dirty', status: 'dirty', ahead: 0, behind: 1 },
      { repo: 'parted', status: 'diverged', ahead: 1, behind: 1 },
      { repo: 'gone', status: 'error', message: /\S/ },
      { repo: 'bare', status: 'no-remote' },
    ),
  )
  t.equal(readFileSync(join(workspace, 'behind/f'), 'utf8'), 'new\n')
  t.equal(readFileSync(join(workspace, 'dirty/f'), 'utf8'), 'edited\n')
  const { snapshots } = await client.call('GET /history/snapshots', {})
  t.match(snapshots[0], { label: 'before a sync' })
  t.match(await refusalOf(() => client.call('POST /workspace/sync', { repos: ['none'] })), { status: 404 })
  for (const name of names) rmSync(join(workspace, name), { recursive: true })
  const all = await client.call('POST /workspace/sync', {})
  t.ok(all.repos.some(({ repo, status }) => repo === 'root' && status === 'no-remote'))
})

t.test('a clone that a shell deleted comes back from a saved point with its git, commits and changes', async t => {
  for (const name of ['kept', 'lost']) {
    await client.call('POST /workspace/repos', { name, cloneUrl: url })
    put(join(workspace, name), { f: 'committed\n' })
    commitAll(join(workspace, name), 'not pushed')
    put(join(workspace, name), { f: 'edited\n', 'dir/new': 'n\n' })
  }
  const state = (name: string) =>
    ['log --format=%H', 'status --porcelain', 'reflog --format=%H'].map(args =>
      inGit(join(workspace, name), ...args.split(' ')),
    )
  const before = [state('kept'), state('lost')]
  const { id } = await client.call('POST /history/snapshots', {})
  rmSync(join(workspace, 'lost'), { recursive: true })
  await client.call('POST /history/restore', { id: id! })
  t.same([state('kept'), state('lost')], before)
  t.equal(readFileSync(join(workspace, 'lost/dir/new'), 'utf8'), 'n\n')
  const { repos } = await client.call('GET /git/changes', { repo: 'lost' })
  t.same(
    repos[0]!.unstaged.map(({ path }) => path),
    ['f', 'dir/new'],
  )

  renameSync(join(workspace, 'lost'), join(workspace, 'moved'))
  await client.call('POST /history/restore', { id: id!, scope: 'lost' })
  t.notOk(existsSync(join(workspace, 'lost/.git')), 'two checkouts never share one git dir')
  t.equal(readFileSync(join(workspace, 'lost/f'), 'utf8'), 'edited\n')
})
