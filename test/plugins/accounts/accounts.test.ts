import { chmodSync, cpSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { contentOf } from '../../support/secret-search.js'
import { packed } from '../system/bundles/bundles-support.js'
import { accountWorld, rowsOf, type AccountWorld } from './support.js'

const acme = { provider: 'acme' } as const
const HANDSHAKE = 'h'.repeat(32)
/** Every call of the group, with a body that is well-formed. */
const CALLS: readonly (readonly [method: string, path: string, body?: object])[] = [
  ['GET', '/accounts/acme'],
  ['GET', '/accounts/acme/limits'],
  ['GET', '/acme/accounts'],
  ['POST', '/accounts/acme/login/start', {}],
  ['POST', '/accounts/acme/login/finish', { handshake: HANDSHAKE, code: 'c' }],
  ['POST', '/accounts/acme/login/cancel', { handshake: HANDSHAKE }],
  ['POST', '/accounts/acme/rename', { id: 'a', label: '' }],
  ['POST', '/accounts/acme/disconnect', { id: 'a' }],
  ['POST', '/acme/login/start', {}],
  ['POST', '/acme/login/cancel', { handshake: HANDSHAKE }],
  ['POST', '/acme/account/rename', { id: 'a', label: '' }],
  ['POST', '/acme/account/disconnect', { id: 'a' }],
]

/** The files of accounts, and of the attempts to sign in. */
const treeOf = ({ folder }: AccountWorld): string => join(folder, 'data', 'files', 'accounts')
const filesOf = (world: AccountWorld): string[] =>
  globSync('auth/acme/*.json', { cwd: treeOf(world) }).map(name => join(treeOf(world), name))

t.test('no credential, no token and no viewer reaches a call; a collaborator reads, without people', async t => {
  const { daemon, key } = await accountWorld(t)
  await key()
  const statuses = (headers: { [name: string]: string }) =>
    Promise.all(
      CALLS.map(async ([method, path, body]) => {
        const sent = body && { body: JSON.stringify(body) }
        const given = { ...headers, ...(body && { 'content-type': 'application/json' }) }
        return (await fetch(daemon.url + path, { method, headers: given, ...sent })).status
      }),
    )
  t.same(new Set(await statuses({})), new Set([401]))
  t.same(new Set(await statuses({ authorization: 'Bearer vic@example.org' })), new Set([403]))
  for (const scope of ['editor', 'read', 'drive', 'land'] as const) {
    const { token } = await daemon.token(scope)
    t.same(new Set(await statuses({ 'x-sandbox-control': token })), new Set([403]), scope)
  }
  const collaborator = await statuses({ authorization: 'Bearer col@example.org' })
  t.same(collaborator.slice(0, 3), [200, 200, 200])
  t.same(new Set(collaborator.slice(3)), new Set([403]))
})

t.test('both families of paths answer from one store, and other groups keep theirs', async t => {
  const { daemon, call, key } = await accountWorld(t)
  const row = await key()
  const { accounts } = await call('GET /accounts/{provider}', acme)
  t.same((await call('GET /{provider}/accounts', acme)).accounts, accounts)
  t.match(accounts, exactly({ id: row.id }))
  for (const path of ['/nosuch/accounts', '/accounts/nosuch', '/translator/accounts', '/agents/accounts', '/acme'])
    t.equal((await daemon.fetch(path)).status, 404, path)
  t.equal((await daemon.fetch('/acme/accounts', { method: 'PUT', body: '{}' })).status, 405)
  const started = await call('POST /{provider}/login/start', acme)
  t.same(Object.keys(started).sort(), ['expiresAt', 'handshake', 'url'])
  await call('POST /{provider}/login/cancel', { ...acme, handshake: started.handshake })
  t.match(await call('POST /{provider}/account/rename', { ...acme, id: row.id, label: 'Team' }), { label: 'Team' })
  await call('POST /{provider}/account/disconnect', { ...acme, id: row.id })
  t.same(await rowsOf({ call }), [])
})

t.test('a label is changed and restored; the e-mail shows to maintainers alone', async t => {
  const { daemon, call, server } = await accountWorld(t)
  const { url } = await call('POST /accounts/{provider}/login/start', { ...acme, flow: 'redirect' })
  await fetch(await server.approve(url, 'ada@example.org'))
  const [row] = await rowsOf({ call })
  const rename = (label: string) => call('POST /accounts/{provider}/rename', { ...acme, id: row!.id, label })
  t.match(await rename('Team'), { label: 'Team', email: 'ada@example.org' })
  t.match(await rename(''), { label: 'ada@example.org' })
  t.match(await refusalOf(() => rename('x'.repeat(81))), { status: 400 })
  const unknown = { ...acme, id: 'nobody', label: 'x' }
  t.match(await refusalOf(() => call('POST /accounts/{provider}/rename', unknown)), { status: 404 })
  const seen = await daemon.fetch('/accounts/acme', { headers: { authorization: 'Bearer col@example.org' } })
  const { accounts, signIns } = (await seen.json()) as { accounts: object[]; signIns: object[] }
  t.match(accounts, exactly({ label: 'ACME 1', email: undefined }))
  t.notOk(JSON.stringify(accounts).includes('ada@'))
  t.same(signIns, [])
})

t.test('disconnecting one of two destroys its file, and its provider revokes it', async t => {
  const world = await accountWorld(t)
  const { call, server, recorded } = world
  for (const email of ['ada@example.org', 'bob@example.org']) {
    const { url } = await call('POST /accounts/{provider}/login/start', { ...acme, flow: 'redirect' })
    await fetch(await server.approve(url, email))
  }
  const [first, second] = await rowsOf(world)
  await call('POST /accounts/{provider}/disconnect', { ...acme, id: first!.id })
  await call('POST /accounts/{provider}/disconnect', { ...acme, id: first!.id })
  t.match(await rowsOf(world), exactly({ id: second!.id, email: 'bob@example.org' }))
  t.same(filesOf(world), [join(treeOf(world), 'auth', 'acme', `${second!.id}.json`)])
  t.equal(server.revoked.length, 2, 'both tokens of it')
  t.match(
    recorded,
    exactly({ type: 'account.connected' }, { type: 'account.connected' }, { type: 'account.disconnected' }),
  )
  t.match(await world.key(), { label: 'ACME 1' }, 'its number is free again')
})

t.test('accounts are kept in files that only the daemon reads; a changed byte spoils one account alone', async t => {
  const world = await accountWorld(t)
  await world.key()
  await world.key([...world.server.keys][1]!)
  const files = filesOf(world)
  t.equal(files.length, 2)
  for (const file of files) t.equal(statSync(file).mode & 0o777, 0o600)
  for (const folder of ['', 'auth', 'auth/acme', 'pending'])
    t.equal(statSync(join(treeOf(world), folder)).mode & 0o777, 0o700, folder)
  const [first = ''] = files
  const bytes = readFileSync(first)
  bytes[bytes.length - 1]! ^= 1
  await world.daemon.stop()
  chmodSync(first, 0o600)
  writeFileSync(first, bytes)
  const later = await accountWorld(t, { server: world.server, folder: world.folder })
  const rows = await rowsOf(later)
  const spoilt = rows.find(({ needsReauth }) => needsReauth)
  t.match(spoilt, { detail: /cannot be read/ })
  t.ok(first.includes(spoilt!.id))
  t.equal(rows.length, 2)
  const { next } = await later.call('GET /accounts/{provider}/limits', acme)
  t.ok(next && next !== spoilt!.id, 'the other one works')
  const started = await later.call('POST /accounts/{provider}/login/start', {
    ...acme,
    flow: 'key',
    account: spoilt!.id,
  })
  const key = 'sk-third-key-of-the-tests'
  later.server.keys.add(key)
  const again = { ...acme, handshake: started.handshake, key }
  t.match(await later.call('POST /accounts/{provider}/login/finish', again), { id: spoilt!.id, needsReauth: false })
})

t.test('a backup holds nothing of accounts', async t => {
  const world = await accountWorld(t)
  await world.key()
  await world.daemon.stop()
  const where = { workspace: join(world.folder, 'workspace'), data: join(world.folder, 'data') }
  const daemon = await daemonWith(t, ['accounts', 'agent', 'agents', 'providers', 'system'], where)
  const { state, name } = await packed(t, daemon)
  t.equal(state, 'ready')
  const bundle = contentOf(join(world.folder, 'data/system/exports', name)).toString('latin1')
  t.match(bundle, /ustar/, 'it is read')
  for (const found of ['auth/acme', 'machine.key', [...world.server.keys][0]!]) t.notOk(bundle.includes(found), found)
})

t.test('with the key of another machine nothing opens, and the daemon starts', async t => {
  const world = await accountWorld(t)
  await world.key()
  await world.daemon.stop()
  const elsewhere = folderOf(t)
  cpSync(treeOf(world), join(elsewhere, 'data', 'files', 'accounts'), { recursive: true })
  const other = await accountWorld(t, { server: world.server, folder: elsewhere })
  t.match(await rowsOf(other), exactly({ needsReauth: true, detail: /sign in to it again/ }))
})

t.test('a definition with the id of a path is reported and not loaded', async t => {
  const { call, server } = await accountWorld(t)
  const { call: there } = await accountWorld(t, { server, others: { agent: server.definition('agent') } })
  t.match((await there('GET /providers')).problems, exactly({ file: 'agent.json', message: /reserved/ }))
  t.same((await call('GET /providers')).problems, [])
})
