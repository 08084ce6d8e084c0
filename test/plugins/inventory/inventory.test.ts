import {
  chmodSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { InventoryEntry } from '../../../plugins/inventory/contract.js'
import { inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { gitWorld } from '../git/support.js'
import { host, inventoryWorld, redis } from './support.js'

const COMMENTED = `// Machines of the house.
{
  "version": 3,
  "inventory": [
    { "kind": "backend", "provider": "host", "name": "cellar", // never sleeps
      "values": { "address": "10.0.0.1", "user": "deploy", "hostKey": "ssh-ed25519 AAAA" } }
  ],
  "else": [1,2,   3]
}
`
const world = await inventoryWorld(t)
const { client, daemon, as, text, head, commits, byHand, intent, file } = world
const fresh = (): void => byHand(COMMENTED.replace('3,', `${Date.now()}${commits()},`))
const names = async () => (await client.call('GET /inventory')).entries.map(({ name }) => name)
const add = (entry: InventoryEntry) => client.call('POST /inventory', entry)

t.test('without a credential or with a weaker one nothing is read or changed', async t => {
  const calls = [
    ['GET', '/inventory'],
    ['GET', '/inventory/kinds'],
    ['POST', '/inventory'],
    ['DELETE', '/inventory/cellar'],
  ] as const
  for (const [method, path] of calls) t.equal((await fetch(daemon.url + path, { method })).status, 401, path)
  const status = async (scope: 'read' | 'drive' | 'land' | 'editor', method: string, path: string) => {
    const { token } = await daemon.token(scope)
    const body = method === 'POST' ? JSON.stringify(host('x')) : undefined
    const headers = { 'x-sandbox-control': token, 'content-type': 'application/json' }
    return (await fetch(daemon.url + path, { method, headers, ...(body && { body }) })).status
  }
  for (const scope of ['read', 'drive', 'land'] as const)
    t.same(await Promise.all(calls.map(([method, path]) => status(scope, method, path))), [200, 200, 403, 403], scope)
  t.equal(await status('editor', 'GET', '/inventory'), 403)
  for (const name of ['col', 'vic'])
    await t.rejects(as(name).call('POST /inventory', host('x')), { reason: 'forbidden', message: /maintainer/ }, name)
})

t.test('a body or a name of another form is 400', async t => {
  for (const body of [
    {},
    { ...host('x'), kind: 'moon' },
    host('a b'),
    host(''),
    host('x'.repeat(61)),
    { ...host('x'), values: { a: [] } },
  ])
    t.equal((await daemon.fetch('/inventory', { method: 'POST', body: JSON.stringify(body) })).status, 400)
  const many = Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`o${at}`, 1]))
  t.equal(
    (await daemon.fetch('/inventory', { method: 'POST', body: JSON.stringify({ ...host('x'), values: many }) })).status,
    400,
  )
  t.equal((await daemon.fetch('/inventory/a%20b', { method: 'DELETE' })).status, 400)
})

t.test('an entry is one commit of the file alone, and all else of it stays byte by byte', async t => {
  fresh()
  const [before, count] = [text(), commits()]
  const list = await as('mai').call('POST /inventory', host('attic'))
  t.equal(commits(), count + 1)
  t.equal(inGit(intent, 'show', '--name-only', '--format=', 'HEAD').trim(), 'deploy.config.json')
  t.equal(inGit(intent, 'log', '-1', '--format=%ae %ce').trim(), 'mai@example.org sandbox@localhost')
  const kept = before.split('\n')
  t.ok(
    kept.every(line => text().includes(line)),
    text(),
  )
  t.match(list, { ready: true, dirty: false, commit: head(), file: 'intent/deploy.config.json' })
  t.same(await names(), ['cellar', 'attic'])
  t.equal(inGit(intent, 'status', '--porcelain'), '')
})

t.test('an entry that is there commits nothing, and a changed one stays in its place', async t => {
  fresh()
  await add(host('attic'))
  const [count, before] = [commits(), text()]
  await add(host('attic'))
  t.equal(commits(), count)
  await add(host('attic', '10.9.9.9'))
  t.equal(commits(), count + 1)
  t.equal(text(), before.replace('10.0.0.2', '10.9.9.9'))
  t.same(await names(), ['cellar', 'attic'])
})

t.test('twenty additions at once are twenty entries and twenty commits', async t => {
  fresh()
  const count = commits()
  const wanted = Array.from({ length: 20 }, (_, at) => `h${at}`)
  await Promise.all(wanted.map(name => add(host(name))))
  t.equal(commits(), count + 20)
  t.same((await names()).sort(), ['cellar', ...wanted].sort())
})

t.test('what cannot be is refused by its field, and neither file nor history changes', async t => {
  fresh()
  const [before, at] = [text(), head()]
  const refused = async (entry: InventoryEntry, message: RegExp) =>
    t.rejects(add(entry), { reason: 'unprocessable', message }, String(message))
  await refused(redis('cache', 'nowhere'), /cache: on: expected the name of a declared host, found "nowhere"/)
  await refused(redis('cache', 'cache'), /on: expected the name of a declared host/)
  await refused(redis('cache', 'cellar', 'nowhere'), /expose: expected the name of a backend that exposes/)
  await refused({ ...host('x'), provider: 'moon' } as InventoryEntry, /provider: expected one of host, found "moon"/)
  await refused({ ...redis('x', 'cellar'), service: 'moon' } as InventoryEntry, /service: expected one of container/)
  await refused({ ...host('x'), values: { user: 'a' } }, /values.address: expected a value, found none/)
  await refused({ ...host('x'), values: { ...host('x').values, moon: 1 } }, /values.moon: expected only address, user/)
  await refused({ ...host('x'), values: { ...host('x').values, port: 'y' } }, /values.port: expected a number/)
  await refused({ ...host('x'), values: { ...host('x').values, port: 70000 } }, /values.port: expected a port/)
  await refused({ ...host('x'), values: { ...host('x').values, engine: 'moon' } }, /one of podman, docker/)
  await refused({ ...host('x'), values: { ...host('x').values, address: '-oProxyCommand=x' } }, /values.address/)
  await refused(host('CELLAR'), /differs from cellar in more than upper and lower case/)
  t.equal(text(), before)
  t.equal(head(), at)
})

t.test('a secret among the values is refused with the name that stores it, and is nowhere', async t => {
  fresh()
  const secret = 'c3VwZXItc2VjcmV0LWtleQ'
  const entry = { ...host('attic'), values: { ...host('attic').values, sshKey: secret } }
  await t.rejects(add(entry), { reason: 'unprocessable', message: /store it as HOST_SSH_KEY_ATTIC/ })
  t.notMatch(text(), secret)
  t.notMatch(inGit(intent, 'log', '-p', '--all'), secret)
  await add(host('attic'))
  const attic = async () => (await client.call('GET /inventory')).entries.find(({ name }) => name === 'attic')
  t.match(await attic(), { secrets: exactly({ option: 'sshKey', key: 'HOST_SSH_KEY_ATTIC', set: false }) })
  await client.call('POST /secrets', { key: 'HOST_SSH_KEY_ATTIC', value: secret })
  t.match(await attic(), { secrets: exactly({ option: 'sshKey', key: 'HOST_SSH_KEY_ATTIC', set: true }) })
  const { token } = await daemon.token('read')
  const response = await fetch(`${daemon.url}/inventory`, { headers: { 'x-sandbox-control': token } })
  t.notMatch(await response.text(), 'HOST_SSH_KEY')
})

t.test('a machine that a service stands on goes after it', async t => {
  fresh()
  await add(redis('cache', 'cellar', 'cellar'))
  t.match((await client.call('GET /inventory')).entries[0], { usedBy: exactly('cache') })
  await t.rejects(client.call('DELETE /inventory/{name}', { name: 'cellar' }), {
    reason: 'conflict',
    message: /cellar is named by cache/,
  })
  await t.rejects(add({ ...redis('cellar', 'cellar') }), { message: /on: expected the name of a declared host/ })
  await client.call('DELETE /inventory/{name}', { name: 'cache' })
  const count = commits()
  await client.call('DELETE /inventory/{name}', { name: 'cache' })
  t.equal(commits(), count, 'what is gone commits nothing')
  await client.call('DELETE /inventory/{name}', { name: 'cellar' })
  t.same(await names(), [])
  t.match(text(), '"else": [1,2,   3]')
})

t.test('an edit by hand shows at once, and holds up additions until it is committed', async t => {
  fresh()
  byHand(COMMENTED.replace('cellar', 'vault'), false)
  t.match(await client.call('GET /inventory'), { dirty: true, entries: exactly({ name: 'vault' }) })
  t.notOk((await client.call('GET /inventory')).commit)
  await t.rejects(add(host('attic')), { reason: 'conflict', message: /has uncommitted edits/ })
  byHand('{\n  "inventory": [}\n', false)
  await t.rejects(client.call('GET /inventory'), { reason: 'unprocessable', message: /line 2, column 17/ })
  await t.rejects(add(host('attic')), { reason: 'conflict', message: /has uncommitted edits/ })
  inGit(intent, 'checkout', '-q', 'deploy.config.json')
  await add(host('attic'))
  t.same(await names(), ['cellar', 'attic'])
})

t.test('a secret that somebody wrote into the file is not shown', async t => {
  const entry = { kind: 'service', service: 'postgres', name: 'db', values: { password: 'hunter2', database: 'd' } }
  byHand(JSON.stringify({ inventory: [host('cellar'), { ...entry, on: 'cellar' }] }))
  const list = await client.call('GET /inventory')
  t.same(list.entries[1]?.values, { database: 'd' })
  t.notMatch(JSON.stringify(list), 'hunter2')
  await t.rejects(add(host('attic')), { message: /values.password: .*store it as SERVICE_PASSWORD_DB/ })
})

t.test('a link, a file that is too large and one that is not UTF-8 are refused, and stay', async t => {
  const refused = async (message: RegExp) => {
    await t.rejects(client.call('GET /inventory'), { reason: 'unprocessable', message })
    await t.rejects(add(host('attic')), { reason: 'unprocessable', message })
  }
  fresh()
  renameSync(file, join(intent, 'real.json'))
  symlinkSync('real.json', file)
  byHand(COMMENTED)
  await refused(/is no plain file/)
  t.ok(lstatSync(file).isSymbolicLink())
  rmSync(file)
  writeFileSync(file, '{}')
  truncateSync(file, 5 * 1024 * 1024)
  await refused(/of intent: expected at most 4194304 bytes/)
  writeFileSync(file, Buffer.from('{ "a": "\xff" }', 'latin1'))
  inGit(intent, 'add', '-A')
  inGit(intent, 'commit', '-q', '-m', 'By hand')
  await refused(/expected a text in UTF-8/)
})

t.test('an empty file has no entries, and a file keeps its permissions', async t => {
  byHand('')
  t.same(await names(), [])
  chmodSync(file, 0o600)
  await add(host('attic'))
  t.same(await names(), ['attic'])
  t.equal(statSync(file).mode & 0o777, 0o600)
})

t.test('what a person saves while a commit fails stays', async t => {
  fresh()
  writeFileSync(join(intent, '.gitattributes'), 'deploy.config.json filter=mine\n')
  inGit(intent, 'add', '-A')
  inGit(intent, 'commit', '-q', '-m', 'By hand')
  const before = text()
  const filter = (clean: string) => inGit(intent, 'config', 'filter.mine.clean', clean)
  inGit(intent, 'config', 'filter.mine.required', 'true')
  filter('cat > /dev/null; exit 1')
  await t.rejects(add(host('attic')), { reason: 'conflict', message: /git commits deploy.config.json not/ })
  t.equal(text(), before, 'without that the old one is back')
  filter(`cat > /dev/null; printf mine > ${file}; exit 1`)
  await t.rejects(add(host('attic')), { reason: 'conflict', message: /git commits deploy.config.json not/ })
  t.equal(text(), 'mine')
  inGit(intent, 'config', '--remove-section', 'filter.mine')
  rmSync(join(intent, '.gitattributes'))
})

t.test('other staged files stay staged, and a hook of the repository does not run', async t => {
  fresh()
  writeFileSync(join(intent, 'other.txt'), 'mine\n')
  inGit(intent, 'add', 'other.txt')
  const hooks = join(inGit(intent, 'rev-parse', '--absolute-git-dir').trim(), 'hooks')
  mkdirSync(hooks, { recursive: true })
  writeFileSync(join(hooks, 'pre-commit'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  await add(host('attic'))
  t.equal(inGit(intent, 'show', '--name-only', '--format=', 'HEAD').trim(), 'deploy.config.json')
  t.match(inGit(intent, 'status', '--porcelain'), 'A  other.txt')
  rmSync(join(hooks, 'pre-commit'))
  inGit(intent, 'rm', '-q', '--cached', 'other.txt')
})

t.test('in the middle of a merge nothing is added', async t => {
  fresh()
  const merge = join(inGit(intent, 'rev-parse', '--absolute-git-dir').trim(), 'MERGE_HEAD')
  writeFileSync(merge, `${head()}\n`)
  await t.rejects(add(host('attic')), { reason: 'conflict', message: /in the middle of a merge/ })
  inGit(intent, 'merge', '--quit')
})

t.test('a change is in the activity record and among the events, by the one who made it', async t => {
  fresh()
  await as('mai').call('POST /inventory', host('attic'))
  const { events } = await client.call('GET /activity', { limit: 50 })
  const found = events.find(({ type }) => type === 'inventory.changed')
  t.match(found, { actor: 'mai@example.org', extra: { name: 'attic', kind: 'backend', op: 'added', commit: head() } })
})

t.test('people who see no folder of it find an empty list', async t => {
  fresh()
  t.match(await as('ann').call('GET /inventory'), { ready: false, entries: exactly() })
  t.match(await as('vic').call('GET /inventory'), { ready: true })
})

t.test('without the repository the list is empty, and an addition says what makes it', async t => {
  const bare = await gitWorld(t, { 'docs/a.md': 'a\n' }, ['inventory'])
  t.same(await bare.client.call('GET /inventory'), { ready: false, dirty: false, entries: [] })
  await t.rejects(bare.client.call('POST /inventory', host('x')), { reason: 'conflict', message: /DevOps/ })
  await t.rejects(bare.client.call('DELETE /inventory/{name}', { name: 'x' }), {
    reason: 'conflict',
    message: /DevOps/,
  })
  const { kinds } = await bare.client.call('GET /inventory/kinds')
  t.same(
    kinds.map(({ kind, id }) => id ?? kind),
    ['host', 'container', 'postgres', 'redis', 'app'],
  )
})
