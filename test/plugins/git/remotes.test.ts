import { chmodSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { folderOf, inGit } from '../../support/daemon.js'
import { bareCopy, gitServer } from '../../support/servers/git-server.js'
import { exactly } from '../../support/lists.js'
import { commitAll, gitWorld, put, repoAt } from './support.js'

const { client, workspace, daemon, as } = await gitWorld(t, { 'README.md': '# work\n' }, ['activity', 'workspace'])
const server = await gitServer(t, folderOf(t))
let made = 0

/** A repository, its remote with the same commits, and another checkout of that remote. */
const fresh = async (files: { readonly [path: string]: string } = { f: '1\n' }) => {
  const repo = `repo${made++}`
  const at = join(workspace, repo)
  repoAt(at, files)
  const bare = join(server.folder, `${repo}.git`)
  bareCopy(at, bare)
  const url = `${server.url}/${repo}.git`
  await client.call('POST /git/{repo}/remotes', { repo, name: 'origin', url })
  const other = folderOf(t)
  inGit(other, 'clone', '-q', bare, '.')
  const elsewhere = (file: string, branch = 'main') => {
    put(other, { [file]: `${file}\n` })
    const sha = commitAll(other, file)
    inGit(other, 'push', '-q', 'origin', `HEAD:${branch}`)
    return sha
  }
  return { repo, at, bare, url, other, elsewhere }
}
const rev = (at: string, name: string) => inGit(at, 'rev-parse', name).trim()
const post = (path: string, body: object, headers: { [name: string]: string } = {}) =>
  fetch(`${daemon.url}${path}`, {
    method: path.endsWith('/file') ? 'PUT' : 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

t.test('remotes are for maintainers; only a fetch is for collaborators and the token drive', async t => {
  const { repo } = await fresh()
  const body = { name: 'v1', remote: 'origin', url: server.url, path: 'f', content: '', message: 'm' }
  for (const call of ['remotes', 'fetch', 'pull', 'push', 'tag/push', 'tag/delete', 'file', 'publish-file']) {
    t.equal((await post(`/git/${repo}/${call}`, body)).status, 401, call)
    const { token } = await daemon.token('land', call)
    const { status } = await post(`/git/${repo}/${call}`, body, { 'x-sandbox-control': token })
    t.equal(status, call === 'fetch' ? 200 : 403, call)
  }
  t.match(await refusalOf(() => as('col').call('POST /git/{repo}/push', { repo })), { status: 403 })
  t.match(await as('col').call('POST /git/{repo}/fetch', { repo }), { ok: true })
})

t.test('an address that names a program, a password or a path elsewhere is refused', async t => {
  const { repo, at } = await fresh()
  const set = (url: string) => client.call('POST /git/{repo}/remotes', { repo, name: 'bad', url })
  for (const [status, url] of [
    [400, 'ext::sh -c "touch /tmp/x"'],
    [400, '-oProxyCommand=x'],
    [400, 'ftp://example.org/x'],
    [400, 'file://elsewhere/x'],
    [400, 'https://me:hunter2@example.org/x'],
    [400, 'https://'],
    [400, 'ssh://-oProxyCommand=x/y'],
    [422, 'file:///etc'],
    [422, '/etc'],
    [422, '../../..'],
    [422, join(workspace, '.sandbox')],
  ] as const)
    t.match(await refusalOf(() => set(url)), { status }, url)
  t.notMatch(await refusalOf(() => set('https://me:hunter2@example.org/x')), { message: /hunter2/ })
  t.match(await refusalOf(() => client.call('POST /git/{repo}/remotes', { repo, name: 'a..b', url: server.url })), {
    status: 400,
  })
  t.match(await refusalOf(() => client.call('POST /git/{repo}/remotes', { repo, name: 'none' })), { status: 404 })
  t.equal(inGit(at, 'remote').trim(), 'origin')
  // What a terminal wrote into the settings counts no more than what a caller sends.
  inGit(at, 'config', 'remote.origin.url', 'ext::sh -c "touch ran"')
  t.match(await refusalOf(() => client.call('POST /git/{repo}/fetch', { repo })), { status: 422 })
  t.notOk(existsSync(join(at, 'ran')))
  await client.call('POST /git/{repo}/remotes', { repo, name: 'origin' })
  t.equal(inGit(at, 'remote').trim(), '')
  t.match(await client.call('POST /git/{repo}/fetch', { repo }), { ok: false, code: 'no-remote' })
})

t.test('push sets what a branch follows; others push; pull goes forward, and refuses where both went on', async t => {
  const { repo, at, bare, elsewhere } = await fresh()
  put(at, { mine: '1\n' })
  const mine = commitAll(at, 'mine')
  t.match(await client.call('POST /git/{repo}/push', { repo }), { ok: true, head: mine })
  t.equal(rev(bare, 'main'), mine)
  t.equal(rev(at, 'origin/main'), mine)
  t.match(await client.call('GET /git/{repo}/remote', { repo }), { upstream: 'origin/main', ahead: 0, behind: 0 })
  t.match(await client.call('POST /git/{repo}/push', { repo }), { ok: true }, 'again')

  const other = folderOf(t)
  inGit(other, 'clone', '-q', bare, '.')
  put(other, { theirs: '1\n' })
  const theirs = commitAll(other, 'theirs')
  inGit(other, 'push', '-q', 'origin', 'main')
  t.match(await refusalOf(() => client.call('POST /git/{repo}/pull', { repo, expectHead: theirs })), { status: 409 })
  t.match(await client.call('POST /git/{repo}/pull', { repo }), { ok: true, head: theirs })
  t.equal(readFileSync(join(at, 'theirs'), 'utf8'), '1\n')
  t.match(await client.call('POST /git/{repo}/pull', { repo }), { ok: true, head: theirs }, 'nothing new')

  put(at, { both: 'here\n' })
  const here = commitAll(at, 'here')
  put(other, { both: 'there\n' })
  const there = commitAll(other, 'there')
  inGit(other, 'push', '-q', 'origin', 'main')
  const status = inGit(at, 'status', '--porcelain')
  const diverged = { ok: false, code: 'not-fast-forward', head: here }
  t.match(await client.call('POST /git/{repo}/pull', { repo }), { ...diverged, reason: /has 1 .* lacks 1/ })
  t.equal(inGit(at, 'status', '--porcelain'), status)
  t.match(await client.call('POST /git/{repo}/push', { repo }), diverged)
  t.equal(rev(bare, 'main'), there)
  elsewhere('unseen', 'other')
  t.match(await client.call('POST /git/{repo}/push', { repo, force: 'with-lease' }), { ok: true })
  t.equal(rev(bare, 'main'), here)
  inGit(other, 'push', '-q', '-f', 'origin', 'main')
  put(at, { both: 'again\n' })
  commitAll(at, 'again')
  t.match(await client.call('POST /git/{repo}/push', { repo, force: 'with-lease' }), { ok: false, code: 'rejected' })
  t.equal(rev(bare, 'main'), there, 'what nobody saw here is not lost')
  const { events } = await client.call('GET /activity', { limit: 200 })
  for (const type of ['git.pushed', 'git.pulled', 'git.remoteSet'])
    t.ok(
      events.some(event => event.type === type),
      type,
    )
})

t.test('fetch adds branches and tags and removes deleted ones; two fetches at once are one', async t => {
  const { repo, at, other, elsewhere } = await fresh()
  const side = elsewhere('side', 'side')
  inGit(other, 'tag', '-a', '-m', 'one', 'v1')
  inGit(other, 'push', '-q', 'origin', 'v1')
  const before = server.requests.length
  const both = await Promise.all([1, 2].map(() => client.call('POST /git/{repo}/fetch', { repo })))
  t.match(both, exactly({ ok: true }, { ok: true }))
  const asked = server.requests.slice(before).filter(({ path }) => path.endsWith('/info/refs'))
  t.equal(asked.length, 1)
  t.equal(rev(at, 'origin/side'), side)
  t.equal(inGit(at, 'cat-file', '-t', 'v1').trim(), 'tag')
  inGit(other, 'push', '-q', 'origin', ':side')
  await client.call('POST /git/{repo}/fetch', { repo, prune: false })
  t.equal(rev(at, 'origin/side'), side)
  await client.call('POST /git/{repo}/fetch', { repo, remote: 'origin' })
  t.equal(inGit(at, 'branch', '-r').trim(), 'origin/main')
  t.equal(inGit(at, 'status', '--porcelain'), '')
  t.equal(inGit(at, 'fsck', '--strict', '--no-dangling'), '')
  const { remotes } = await client.call('GET /git/{repo}/remotes', { repo })
  t.ok(remotes[0]!.fetchedAt! > Date.now() - 60_000)
  t.same(readdirSync(join(daemon.data, 'git/transfers')), [], 'nothing is left of them')
  t.match(await refusalOf(() => client.call('POST /git/{repo}/fetch', { repo, remote: 'none' })), { status: 404 })
})

t.test('settings and hooks of a repository count for nothing while git asks a remote', async t => {
  const { repo, at, elsewhere } = await fresh()
  const sha = elsewhere('new')
  const run = `sh -c 'touch ${at}/ran'`
  for (const [name, value] of [
    ['core.sshCommand', run],
    ['core.askPass', run],
    ['credential.helper', `!${run}`],
    ['core.fsmonitor', run],
    ['remote.origin.uploadpack', run],
    ['remote.origin.proxy', 'http://127.0.0.1:9'],
    ['http.proxy', 'http://127.0.0.1:9'],
    ['url.http://127.0.0.1:9/.insteadOf', server.url],
    ['remote.origin.fetch', '+refs/heads/*:refs/heads/*'],
  ] as const)
    inGit(at, 'config', name, value)
  for (const hook of ['reference-transaction', 'post-merge', 'pre-push'])
    writeFileSync(join(at, '.git/hooks', hook), `#!/bin/sh\ntouch ${at}/ran-${hook}\n`, { mode: 0o755 })
  const head = rev(at, 'HEAD')
  t.match(await client.call('POST /git/{repo}/fetch', { repo }), { ok: true })
  t.equal(rev(at, 'origin/main'), sha)
  t.equal(rev(at, 'HEAD'), head, 'branches stay, whatever the settings say')
  t.same(
    readdirSync(at).filter(name => name.startsWith('ran')),
    [],
  )
})

t.test('the pre-push hook runs before a push, apart, and holds it', async t => {
  const { repo, at, bare } = await fresh()
  const hook = join(at, '.git/hooks/pre-push')
  writeFileSync(hook, '#!/bin/sh\ncat > heard; echo "$1 $2" >> heard\necho "no pushes today" >&2\nexit 1\n')
  put(at, { mine: '1\n' })
  const mine = commitAll(at, 'mine')
  const before = rev(bare, 'main')
  t.match(await client.call('POST /git/{repo}/push', { repo }), { ok: true }, 'it may not run: it is no program')
  chmodSync(hook, 0o755)
  put(at, { mine: '2\n' })
  const second = commitAll(at, 'second')
  const held = { ok: false, code: 'rejected', reason: 'no pushes today' }
  t.match(await client.call('POST /git/{repo}/push', { repo }), held)
  t.not(before, mine)
  t.equal(rev(bare, 'main'), mine)
  t.match(readFileSync(join(at, 'heard'), 'utf8'), `refs/heads/main ${second} refs/heads/main ${mine}\norigin http`)
})

t.test('exactly one tag is published, and deleted here and there', async t => {
  const { repo, at, bare } = await fresh()
  inGit(at, 'tag', 'v1')
  inGit(at, 'tag', 'v2')
  const tag = { repo, name: 'v1', remote: 'origin' }
  t.match(await client.call('POST /git/{repo}/tag/push', tag), { ok: true })
  t.equal(inGit(bare, 'tag').trim(), 'v1')
  for (const wrong of [
    { ...tag, name: 'none' },
    { ...tag, remote: 'none' },
  ])
    t.match(await refusalOf(() => client.call('POST /git/{repo}/tag/push', wrong)), { status: 404 })
  t.same(await client.call('POST /git/{repo}/tag/delete', tag), { ok: true, remote: { ok: true } })
  t.equal(inGit(bare, 'tag').trim(), '')
  t.same(await client.call('POST /git/{repo}/tag/delete', { repo, name: 'v2' }), { ok: true })
  t.equal(inGit(at, 'tag').trim(), '')
  t.match(await refusalOf(() => client.call('POST /git/{repo}/tag/delete', tag)), { status: 404 })
})

t.test('a file is written by its path from the repository, by the rules of the workspace', async t => {
  const { repo, at } = await fresh()
  t.same(await client.call('PUT /git/{repo}/file', { repo, path: 'dir/new', content: 'n\n' }), { ok: true })
  t.equal(readFileSync(join(at, 'dir/new'), 'utf8'), 'n\n')
  for (const [status, file] of [
    [409, { path: 'f', baseHash: 'absent' }],
    [404, { path: '.git/config' }],
    [400, { path: '../x' }],
    [409, { path: 'dir' }],
  ] as const)
    t.match(await refusalOf(() => client.call('PUT /git/{repo}/file', { repo, content: 'x', ...file })), { status })
})

t.test('publishing writes, commits and pushes one file, and goes on where it stopped', async t => {
  const { repo, at, bare } = await fresh({ f: '1\n', '.gitignore': 'ignored\n' })
  put(at, { staged: 's\n', f: '2\n' })
  inGit(at, 'add', 'staged')
  const file = { repo, path: 'docs/new.md', content: '# new\n', message: 'publish\n\nit' }
  const whole = { ok: true, wrote: true, committed: true, pushed: true, branch: 'main', defaultBranch: 'main' }
  t.same(await client.call('POST /git/{repo}/publish-file', file), whole)
  t.equal(inGit(bare, 'show', 'main:docs/new.md'), '# new\n')
  t.equal(inGit(at, 'show', '--name-only', '--format=%B', 'HEAD').trim(), 'publish\n\nit\n\n\ndocs/new.md')
  t.equal(inGit(at, 'status', '--porcelain'), ' M f\nA  staged\n')
  t.same(await client.call('POST /git/{repo}/publish-file', file), { ...whole, wrote: false, committed: false })

  const hook = join(bare, 'hooks/pre-receive')
  writeFileSync(hook, '#!/bin/sh\necho "closed today" >&2\nexit 1\n', { mode: 0o755 })
  const next = { ...file, content: '# next\n' }
  t.match(await client.call('POST /git/{repo}/publish-file', next), {
    ok: false,
    wrote: true,
    committed: true,
    pushed: false,
    reason: /closed today/,
  })
  writeFileSync(hook, '#!/bin/sh\nexit 0\n')
  t.same(await client.call('POST /git/{repo}/publish-file', next), { ...whole, wrote: false, committed: false })
  t.equal(inGit(bare, 'show', 'main:docs/new.md'), '# next\n')

  const ignored = await client.call('POST /git/{repo}/publish-file', { ...file, path: 'ignored' })
  t.match(ignored, { ok: false, committed: false, reason: /ignores ignored/ })
  inGit(at, 'checkout', '-q', '-b', 'side')
  t.match(await client.call('POST /git/{repo}/publish-file', { ...file, content: 'x' }), {
    ok: false,
    wrote: false,
    branch: 'side',
    defaultBranch: 'main',
  })
  t.equal(readFileSync(join(at, 'docs/new.md'), 'utf8'), '# next\n')
  t.match(await refusalOf(() => client.call('POST /git/{repo}/publish-file', { ...file, message: ' ' })), {
    status: 400,
  })
})

t.test('while an operation is in progress pull and publish are refused, and fetch and push work', async t => {
  const { repo, at } = await fresh()
  inGit(at, 'checkout', '-q', '-b', 'side')
  put(at, { f: 'side\n' })
  commitAll(at, 'side')
  inGit(at, 'checkout', '-q', 'main')
  put(at, { f: 'main\n' })
  commitAll(at, 'main')
  t.throws(() => inGit(at, 'merge', 'side'))
  t.match(await refusalOf(() => client.call('POST /git/{repo}/pull', { repo })), { status: 409, message: /merge/ })
  const file = { repo, path: 'x', content: 'x', message: 'x' }
  t.match(await refusalOf(() => client.call('POST /git/{repo}/publish-file', file)), { status: 409 })
  t.notOk(existsSync(join(at, 'x')))
  t.match(await client.call('POST /git/{repo}/fetch', { repo }), { ok: true })
  t.match(await client.call('POST /git/{repo}/push', { repo }), { ok: true })
  inGit(at, 'merge', '--abort')
  inGit(at, 'checkout', '-q', '--detach')
  t.match(await refusalOf(() => client.call('POST /git/{repo}/pull', { repo })), { status: 409 })
  t.match(await refusalOf(() => client.call('POST /git/{repo}/push', { repo })), { status: 409 })
  t.match(await refusalOf(() => client.call('POST /git/{repo}/push', { repo, branch: 'none' })), { status: 404 })
})

t.test('a repository of the same workspace can be a remote', async t => {
  const { repo, at } = await fresh()
  inGit(workspace, 'clone', '-q', '--bare', at, 'shelf.git')
  await client.call('POST /git/{repo}/remotes', { repo, name: 'shelf', url: '../shelf.git' })
  put(at, { f: '2\n' })
  const sha = commitAll(at, 'two')
  inGit(at, 'config', 'branch.main.remote', 'shelf')
  t.match(await client.call('POST /git/{repo}/push', { repo }), { ok: true })
  t.equal(rev(join(workspace, 'shelf.git'), 'main'), sha)
  t.match(await client.call('POST /git/{repo}/fetch', { repo, remote: 'shelf' }), { ok: true })
  t.equal(rev(at, 'shelf/main'), sha)
})
