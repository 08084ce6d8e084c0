import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { folderOf, inGit } from '../../support/daemon.js'
import {
  committed,
  gitServer,
  processesShowing,
  redirectTo,
  trustedAuthority,
} from '../../support/servers/git-server.js'
import { exactly } from '../../support/lists.js'
import { daemonWithBackends, isRunning, listedUntil, pidOf, recordNamed } from './support.js'

const SECRET = 'git-token-0815'
const repositories = folderOf(t)
const origin = join(repositories, 'notes')
mkdirSync(origin)
inGit(origin, 'init', '-q', '-b', 'main')
const write = (manifest: object, files: { readonly [path: string]: string } = {}): void => {
  const base = { publisher: 'ada', name: 'notes', version: '1.0.0', server: 'server.js' }
  writeFileSync(join(origin, 'intentic-extension.json'), JSON.stringify({ ...base, ...manifest }))
  for (const [path, text] of Object.entries({ 'server.js': 'export const activate = () => {}\n', ...files }))
    writeFileSync(join(origin, path), text)
}
write({})
const first = committed(origin)
const { url: server, requests } = await gitServer(t, repositories)
const url = `${server}/notes/.git`

/** A registry whose content the test sets. */
const registry = {
  ...{ etag: 0, asked: 0, unchanged: 0, text: '{"name":"test","extensions":[]}' },
  authorization: undefined as string | undefined,
}
const index = createServer((request, response) => {
  registry.asked++
  registry.authorization = request.headers.authorization
  const etag = `"${registry.etag}"`
  if (request.headers['if-none-match'] === etag) registry.unchanged++
  if (request.headers['if-none-match'] === etag) return void response.writeHead(304).end()
  response.setHeader('etag', etag).end(registry.text)
})
index.listen(0, '127.0.0.1')
await once(index, 'listening')
t.teardown(() => void index.close())
const indexAddress = `http://127.0.0.1:${(index.address() as AddressInfo).port}/registry.json`
const lists = (entry: object, advisories: object[] = []): void => {
  registry.etag++
  const listed = { id: 'ada.notes', ...entry }
  registry.text = JSON.stringify({ name: 'test', extensions: 'source' in listed ? [listed] : [], advisories })
}

const daemon = await daemonWithBackends(t, ['secrets', 'activity'])
const { client, data } = daemon
const id = 'ada.notes'
const code = join(data, 'extensions/code')
const market = (given: { url: string; token?: string }) => client.call('POST /capabilities/marketplace', given)
const preview = (given: object = {}) => client.call('POST /extensions/install/preview', { url, ref: first, ...given })
const install = async (given: object = {}) => {
  const { digest } = await preview(given)
  const lines: object[] = []
  for await (const line of await client.call('POST /extensions/install', { url, ref: first, digest, ...given }))
    lines.push(line)
  return lines
}
const running = (version: string) =>
  listedUntil(daemon, ({ extensions }) =>
    extensions.find(each => each.id === id && each.manifest.version === version && each.backend?.state === 'running'),
  )
const status = async (call: Promise<unknown>) => (await refusalOf(() => call)).status
const staged = () => readdirSync(join(data, 'extensions/staging'))

t.test('only owners install, and tokens do not', async t => {
  const { client: land } = await daemon.token('land')
  t.equal(await status(land.call('POST /extensions/install/preview', { url, ref: first })), 403)
  t.equal((await fetch(`${daemon.url}/extensions/install`, { method: 'POST' })).status, 401)
  t.equal((await fetch(`${daemon.url}/extensions/updates/check`, { method: 'POST' })).status, 401)
})

t.test('a source that is not allowed, and code that cannot be used, are refused and leave nothing', async t => {
  for (const wrong of [
    'git://127.0.0.1/x',
    'file:///etc',
    '/etc',
    'http://10.0.0.1/x',
    'ext::sh -c x',
    '--upload-pack=x',
  ])
    t.equal(await status(preview({ url: wrong })), 400, wrong)
  t.equal(await status(preview({ ref: 'main' })), 400, 'a branch')
  t.equal(await status(preview({ path: '../x' })), 400)
  t.equal(await status(preview({ ref: '0'.repeat(40) })), 424)
  t.equal(await status(preview({ url: `${server}/none/.git` })), 424)
  t.equal(await status(preview({ path: 'none' })), 422)
  for (const manifest of [
    { contributes: { capabilities: [{ id: 'x', kind: 'docker' }] } },
    { internal: {} },
    { permissions: { daemon: ['POST /secrets/reveal'] } },
  ]) {
    write(manifest)
    t.equal(await status(preview({ ref: committed(origin) })), 422, JSON.stringify(manifest))
  }
  write({})
  symlinkSync('/etc/passwd', join(origin, 'leaves'))
  t.equal(await status(preview({ ref: committed(origin) })), 422, 'a link that leaves')
  inGit(origin, 'rm', '-q', '-f', 'leaves')
  symlinkSync('.', join(origin, 'here'))
  t.equal(await status(preview({ ref: committed(origin), path: 'here' })), 422, 'a folder behind a link')
  inGit(origin, 'rm', '-q', '-f', 'here')
  const digest = '0'.repeat(64)
  t.equal(await status(client.call('POST /extensions/install', { url, ref: first, digest })), 409)
  t.same(staged(), [])
  t.notOk(existsSync(join(code, id)))
})

t.test('a commit is installed with the approved powers, and moving the branch changes nothing', async t => {
  const shown = await preview()
  t.match(shown, { id, trust: 'unlisted', compatible: true, powers: exactly(/backend/), size: { files: 2 } })
  const lines = await install()
  t.match(lines.at(-1), { kind: 'result', id, commit: first, rebuildNeeded: false })
  t.match(await running('1.0.0'), { source: 'installed', commit: first, updatePolicy: { updates: 'notify' } })
  t.same(staged(), [])
  t.notOk(existsSync(join(code, id, first, '.git')))
  t.match((await preview()).conflicts, id)
  t.equal(await status(install()), 409, 'the id is taken')
  write({ version: '1.1.0' })
  committed(origin)
  t.match(await recordNamed(daemon, id), { commit: first, manifest: { version: '1.0.0' } })
})

t.test('an update is previewed, applied and taken back, twice', async t => {
  write({ version: '2.0.0', permissions: { daemon: ['GET /activity'] } })
  const ref = committed(origin)
  const shown = await client.call('POST /extensions/{id}/update/preview', { id, ref })
  t.match(shown, {
    version: '2.0.0',
    installedVersion: '1.0.0',
    powers: { added: exactly('calls GET /activity of the sandbox'), removed: exactly() },
    changed: { files: 1 },
  })
  const pid = pidOf(await running('1.0.0'))
  t.equal(await status(client.call('POST /extensions/{id}/update', { id })), 409, 'none is recorded')
  t.match(await refusalOf(() => client.call('POST /extensions/{id}/update', { id, ref })), {
    status: 409,
    body: { added: exactly('calls GET /activity of the sandbox'), digest: shown.digest },
  })
  t.equal(await status(client.call('POST /extensions/{id}/update', { id, ref: '0'.repeat(40) })), 424)
  t.ok(isRunning(pid), 'the old one keeps running')
  t.same(staged(), [], 'nothing of an update that fails is kept')
  t.same(await client.call('POST /extensions/{id}/update', { id, ref, digest: shown.digest }), { ok: true, ref })
  t.match(await running('2.0.0'), { previous: { ref: first, version: '1.0.0' }, health: { state: 'watching' } })
  await client.call('POST /extensions/{id}/enabled', { id, enabled: false })
  t.notOk((await recordNamed(daemon, id)).health, 'what is switched off is not watched')
  await client.call('POST /extensions/{id}/enabled', { id, enabled: true })
  t.notOk((await running('2.0.0')).health)
  await listedUntil(daemon, () => !isRunning(pid))
  t.same(await client.call('POST /extensions/{id}/revert', { id }), { ok: true, ref: first })
  t.match(await running('1.0.0'), { previous: { ref } })
  t.equal(await status(client.call('POST /extensions/{id}/revert', { id, ref: first })), 409, 'another commit was seen')
  await running('1.0.0')
  t.same(await client.call('POST /extensions/{id}/revert', { id, ref }), { ok: true, ref })
  await running('2.0.0')
  await client.call('POST /extensions/{id}/revert', { id })
  t.same(readdirSync(join(code, id)).sort(), [first, ref].sort(), 'one previous version is kept')
  write({ name: 'other' })
  const other = committed(origin)
  t.equal(await status(client.call('POST /extensions/{id}/update/preview', { id, ref: other })), 422)
})

t.test('calls about updates refuse extensions that are not installed from a repository', async t => {
  const built = 'sandbox.activity'
  t.equal(await status(client.call('POST /extensions/{id}/update/preview', { id: built })), 409)
  t.equal(await status(client.call('POST /extensions/{id}/revert', { id: 'no.such' })), 404)
  t.equal(await status(client.call('POST /extensions/{id}/update-policy', { id })), 400)
  await client.call('POST /extensions/{id}/remove', { id })
  t.notOk(existsSync(join(code, id)), 'a removal removes the code')
})

t.test('an update that a registry verified is applied by itself where it adds no power', async t => {
  lists({ version: '1.0.0', trust: 'verified', source: { url, ref: first } })
  t.match(await preview({ registry: indexAddress }), { trust: 'verified' })
  await install({ registry: indexAddress })
  await running('1.0.0')
  write({ version: '1.2.0' })
  const ref = committed(origin)
  lists({ version: '1.2.0', source: { url, ref } })
  await client.call('POST /extensions/updates/check')
  t.match(await recordNamed(daemon, id), { commit: first, update: { ref, trust: 'listed', registry: indexAddress } })
  const asked = registry.unchanged
  await client.call('POST /extensions/updates/check')
  t.equal(registry.unchanged, asked + 1, 'an unchanged registry is not sent again')
  await client.call('POST /extensions/{id}/update-policy', { id, updates: 'agent' })
  await client.call('POST /extensions/updates/check')
  t.match(await recordNamed(daemon, id), { commit: first, update: { needsReview: /runs none/ } }, 'no group agent')
  await client.call('POST /extensions/{id}/update-policy', { id, updates: 'auto' })
  await client.call('POST /extensions/updates/check')
  t.match(await recordNamed(daemon, id), { commit: first, update: { needsReview: /did not verify/ } })
  lists({ version: '1.2.0', trust: 'verified', source: { url, ref } })
  await client.call('POST /extensions/updates/check')
  const updated = await running('1.2.0')
  t.match(updated, { commit: ref, previous: { ref: first } })
  t.notOk(updated.update)
  for (const [needsReview, manifest] of [
    [/adds: calls GET \/activity/, { permissions: { daemon: ['GET /activity'] } }],
    [/for host versions \^9\.0/, { engines: { sandbox: '^9.0' } }],
  ] as const) {
    write({ version: '1.3.0', ...manifest })
    const next = committed(origin)
    lists({ version: '1.3.0', trust: 'verified', source: { url, ref: next } })
    await client.call('POST /extensions/updates/check')
    t.match(await recordNamed(daemon, id), { commit: ref, update: { ref: next, needsReview } })
    await client.call('POST /extensions/updates/check')
    const { events } = await client.call('GET /activity', { limit: 100 })
    const told = events.filter(({ type, extra }) => type === 'extension.update-offered' && extra?.ref === next)
    t.equal(told.length, 1, 'an update is recorded once for its commit')
  }
  const newer = { version: '1.1.0', source: { url, ref: first } }
  const offered = async () => {
    lists(newer)
    await client.call('POST /extensions/updates/check')
    return (await recordNamed(daemon, id)).update
  }
  t.match(await offered(), { ref: first })
  registry.text = 'broken'
  registry.etag++
  t.equal(await status(client.call('POST /extensions/updates/check')), 424)
  t.match(await recordNamed(daemon, id), { commit: ref, update: { ref: first } }, 'records are kept')
  for (const [why, entry] of [
    ['it is not listed', {}],
    ['the installed commit is listed', { ...newer, source: { url, ref } }],
    ['a branch is listed', { ...newer, source: { url, ref: 'main' } }],
  ] as const) {
    t.match(await offered(), { ref: first })
    lists(entry)
    await client.call('POST /extensions/updates/check')
    t.notOk((await recordNamed(daemon, id)).update, why)
  }
})

t.test('an advisory switches an extension off, and a blocked listing cannot be installed', async t => {
  const { commit } = await recordNamed(daemon, id)
  const pid = pidOf(await running('1.2.0'))
  const advisory = { id, refs: [commit], reason: 'it leaks', at: '2026-01-05T09:00:00.000Z' }
  lists({ source: { url, ref: commit } }, [advisory])
  await client.call('POST /extensions/updates/check')
  await listedUntil(daemon, () => !isRunning(pid))
  t.match(await recordNamed(daemon, id), { enabled: false, advisory: { reason: 'it leaks', autoDisabled: true } })
  lists({ source: { url, ref: commit } })
  await client.call('POST /extensions/updates/check')
  const after = await recordNamed(daemon, id)
  t.notOk(after.advisory)
  t.equal(after.enabled, false, 'a person switches it on again')
  await client.call('POST /extensions/{id}/enabled', { id, enabled: true })
  await client.call('POST /extensions/{id}/update-policy', { id, advisories: 'notify' })
  lists({ trust: 'blocked', trustReason: 'bad', source: { url, ref: commit } })
  await client.call('POST /extensions/updates/check')
  const warned = { enabled: true, advisory: { reason: 'bad', autoDisabled: false } }
  t.match(await recordNamed(daemon, id), warned, 'a blocked listing warns, and the policy leaves it on')
  await client.call('POST /extensions/{id}/remove', { id })
  lists({ trust: 'blocked', trustReason: 'bad', source: { url, ref: first } })
  const { digest, trust, trustReason } = await preview({ registry: indexAddress })
  t.same({ trust, trustReason }, { trust: 'blocked', trustReason: 'bad' })
  const blocked = client.call('POST /extensions/install', { url, ref: first, digest, registry: indexAddress })
  t.match(await refusalOf(() => blocked), { status: 409, message: /bad/ })
})

t.test('an index can be a file or the root of a repository, and has its say there too', async t => {
  const at = join(repositories, 'index')
  mkdirSync(at)
  inGit(at, 'init', '-q', '-b', 'main')
  const listed = (trust: string) => {
    const entry = { id, trust, trustReason: 'looked at', source: { url, ref: first } }
    return JSON.stringify({ name: 'team', extensions: [entry] })
  }
  writeFileSync(join(at, 'registry.json'), listed('verified'))
  committed(at)
  const address = `${server}/index/.git`
  t.match(await preview({ registry: address }), { trust: 'verified', trustReason: 'looked at' })
  writeFileSync(join(at, 'registry.json'), listed('blocked'))
  committed(at)
  t.match(await preview({ registry: address }), { trust: 'blocked' }, 'a new commit counts at once')
  inGit(at, 'rm', '-q', 'registry.json')
  committed(at)
  t.match(await refusalOf(() => preview({ registry: address })), { status: 424, message: /has no registry\.json/ })
  t.equal(await status(preview({ registry: `${server}/nowhere.git` })), 424)
  const own = join(daemon.workspace, 'index')
  mkdirSync(own)
  writeFileSync(join(own, 'registry.json'), listed('listed'))
  t.match(await preview({ registry: 'index/registry.json' }), { trust: 'listed' })
  inGit(own, 'init', '-q')
  committed(own)
  t.match(await preview({ registry: 'index' }), { trust: 'listed' })
  t.same(staged(), [])
})

t.test('a stored secret is sent as access token over TLS alone, and is shown nowhere', async t => {
  const secure = await trustedAuthority(t)
  const seen: string[] = []
  const forge = await gitServer(t, repositories, {
    secure,
    needs: `x-access-token:${SECRET}`,
    instead: () => {
      seen.push(...processesShowing(SECRET, Buffer.from(`x-access-token:${SECRET}`).toString('base64')))
      return false
    },
  })
  const from = { url: `${forge.url}/notes/.git`, secret: 'GIT' }
  t.equal(await status(preview(from)), 424, 'it is not stored')
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await client.call('POST /secrets', { key: 'GIT', value: SECRET })
  t.equal(await status(preview({ secret: 'GIT' })), 400, 'not over http')
  t.match(await preview(from), { id })
  t.ok(forge.requests.some(({ authorization }) => authorization !== undefined))
  t.same(seen, [], 'no process has it among its arguments and variables')
  t.notMatch(daemon.logged.join('\n'), SECRET)
  await client.call('POST /secrets', { key: 'GIT', value: SECRET, hosts: ['example.org'] })
  t.match(await refusalOf(() => preview(from)), { status: 424 }, 'it is bound to another host')
  await client.call('POST /secrets', { key: 'GIT', value: SECRET, hosts: ['localhost'] })
  t.match(await preview(from), { id }, 'it is bound to this one')
})

t.test('an index is shown as rows: verified first, blocked last, and what is installed is marked', async t => {
  const at = (entry: object) => ({ source: { url, ref: first }, ...entry })
  registry.etag++
  registry.text = JSON.stringify({
    name: 'team',
    extensions: [
      at({ id: 'ada.bad', trust: 'blocked', trustReason: 'it leaks' }),
      at({ id, version: '1.0.0', description: 'Notes.', engines: '^1.0' }),
      at({ id: 'ada.later', engines: '^9.0' }),
      at({ id: 'ada.branch', source: { url, ref: 'main' } }),
      at({ id: 'ada.far', source: { url: 'http://example.org/x.git', ref: first } }),
      at({ id: 'ada.good', trust: 'verified', securityFix: true }),
    ],
  })
  const { digest } = await preview()
  for await (const _ of await client.call('POST /extensions/install', { url, ref: first, digest }));
  const { name, plugins } = await market({ url: indexAddress })
  t.equal(name, 'team')
  const admitted = { kind: 'extension', trust: 'listed', admitted: true } as const
  t.match(
    plugins,
    exactly(
      { ...admitted, name: 'ada.good', trust: 'verified', securityFix: true, install: { url, ref: first } },
      { ...admitted, name: 'ada.branch', admitted: false, install: { url, ref: 'main' } },
      { ...admitted, name: 'ada.far', admitted: false, install: undefined },
      { ...admitted, name: 'ada.later', admitted: false, compatible: false },
      { ...admitted, name: id, compatible: true, description: 'Notes.', installed: { id, ref: first } },
      { ...admitted, name: 'ada.bad', trust: 'blocked', trustReason: 'it leaks', admitted: false },
    ),
  )
  await client.call('POST /extensions/{id}/remove', { id })
})

t.test('a list of plugins in a repository is shown in the same rows', async t => {
  const own = join(repositories, 'plugins')
  mkdirSync(join(own, '.claude-plugin'), { recursive: true })
  inGit(own, 'init', '-q', '-b', 'main')
  const list = {
    name: 'tools',
    owner: { name: 'Ada' },
    metadata: { pluginRoot: './plugins' },
    plugins: [
      { name: 'format', source: './format', description: 'Formats.', keywords: ['x'] },
      { name: 'away', source: '../../elsewhere' },
      { name: 'hub', source: { source: 'github', repo: 'ada/hub', sha: first } },
      { name: 'part', source: { source: 'git-subdir', url: 'https://git.example.org/x.git', path: 'a', ref: 'v1' } },
      { name: 'packaged', source: { source: 'npm', package: 'x' } },
    ],
  }
  writeFileSync(join(own, '.claude-plugin/marketplace.json'), JSON.stringify(list))
  const commit = committed(own)
  const from = `${server}/plugins/.git`
  const row = { kind: 'plugin', trust: 'listed', admitted: false } as const
  t.same(await market({ url: from }), {
    name: 'tools',
    plugins: [
      { name: 'away', ...row },
      { name: 'format', ...row, description: 'Formats.', install: { url: from, ref: commit, path: 'plugins/format' } },
      { name: 'hub', ...row, install: { url: 'https://github.com/ada/hub.git', ref: first } },
      { name: 'packaged', ...row },
      { name: 'part', ...row, install: { url: 'https://git.example.org/x.git', ref: 'v1', path: 'a' } },
    ],
  })
  t.same(staged(), [])
})

t.test('an index that cannot be shown is refused by what is wrong with it', async t => {
  const path = `${daemon.url}/capabilities/marketplace`
  t.equal((await fetch(path, { method: 'POST' })).status, 401)
  const { token } = await daemon.token('land')
  const asToken = { method: 'POST', headers: { 'x-sandbox-control': token, 'content-type': 'application/json' } }
  t.equal((await fetch(path, { ...asToken, body: '{"url":"x"}' })).status, 403)
  const empty = join(repositories, 'empty')
  mkdirSync(empty)
  inGit(empty, 'init', '-q', '-b', 'main')
  writeFileSync(join(empty, 'README.md'), 'none\n')
  committed(empty)
  writeFileSync(join(daemon.workspace, 'large.json'), ' '.repeat(5 * 1024 * 1024 + 1))
  writeFileSync(join(daemon.workspace, 'other.json'), '{"name":"x","extensions":[{"id":1}]}')
  const bad: [given: { url: string; token?: string }, status: number, message: RegExp][] = [
    [{ url: '' }, 400, /url/],
    [{ url: 'ftp://example.org/registry.json' }, 400, /url: expected https/],
    [{ url: 'http://example.org/registry.json' }, 400, /url: expected https/],
    [{ url: '../registry.json' }, 400, /url: expected https/],
    [{ url: 'other.json', token: 'x' }, 400, /token: expected none for a file of the workspace, found one of 1 char/],
    [{ url: `${server}/empty/.git`, token: 'x' }, 400, /token: expected only with an https address/],
    [{ url: 'large.json' }, 413, /more than 5242880 bytes/],
    [{ url: 'nowhere.json' }, 422, /there is no nowhere\.json/],
    [{ url: 'other.json' }, 422, /extensions\[0\]\.id: expected/],
    [{ url: `${server}/empty/.git` }, 422, /neither registry\.json nor/],
    [{ url: `${server}/nowhere.git` }, 424, /refused/],
    [{ url: 'http://127.0.0.1:1/registry.json' }, 424, /nothing listens/],
  ]
  for (const [given, expected, message] of bad)
    t.match(await refusalOf(() => market(given)), { status: expected, message }, JSON.stringify(given))
  registry.etag++
  registry.text = '<html>'
  t.match(await refusalOf(() => market({ url: indexAddress })), { status: 422, message: /ends with \.git/ })
  registry.text = ' '.repeat(5 * 1024 * 1024 + 1)
  t.equal(await status(market({ url: indexAddress })), 413)
})

t.test('the token of a read is sent over TLS, and is kept nowhere', async t => {
  const token = 'market-token-4711'
  const secure = await trustedAuthority(t)
  const forge = await gitServer(t, repositories, { secure, needs: `x-access-token:${token}` })
  const from = { url: `${forge.url}/plugins/.git` }
  t.equal(await status(market(from)), 424)
  t.match(await market({ ...from, token }), { name: 'tools' })
  registry.etag++
  registry.text = JSON.stringify({ name: 'own', extensions: [] })
  t.match(await market({ url: indexAddress, token }), { name: 'own' })
  t.equal(registry.authorization, `Bearer ${token}`)
  await market({ url: indexAddress })
  t.equal(registry.authorization, undefined, 'the next read is without it')
  for (const file of readdirSync(data, { recursive: true, withFileTypes: true }))
    if (file.isFile()) t.notMatch(readFileSync(join(file.parentPath, file.name), 'latin1'), token, file.name)
  t.notMatch(daemon.logged.join('\n'), token)
})

t.test('code comes from the address that was named and checked, and from no other', async t => {
  const away = await gitServer(t, repositories, { instead: redirectTo(`${server}/notes/.git`) })
  const asked = requests.length
  t.match(await refusalOf(() => preview({ url: `${away.url}/notes/.git` })), {
    status: 424,
    message: /sends on to another address/,
  })
  t.equal(requests.length, asked, 'nobody follows a redirect')
  for (const url of ['https://169.254.169.254/x.git', 'ssh://git@169.254.169.254/x.git'])
    t.match(await refusalOf(() => preview({ url })), { status: 424, message: /told its own secrets/ }, url)
  t.match(await refusalOf(() => preview({ url: `${daemon.url}/x.git` })), {
    status: 424,
    message: /this sandbox itself/,
  })
  t.same(staged(), [])
})

t.test('a repository of the workspace is a source too, and its folder may be named', async t => {
  const own = join(daemon.workspace, 'mine')
  mkdirSync(join(own, 'packages/tool'), { recursive: true })
  inGit(own, 'init', '-q')
  writeFileSync(join(own, 'packages/tool/intentic-extension.json'), JSON.stringify({ version: '0.1.0' }))
  const found = await preview({ url: 'mine', ref: committed(own), path: 'packages/tool' })
  t.match(found, { id: 'local.tool', powers: exactly() })
})
