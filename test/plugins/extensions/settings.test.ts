import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { exactly } from '../../support/lists.js'
import { inGit } from '../../support/daemon.js'
import {
  approvePending,
  daemonWithBackends,
  isRunning,
  listedUntil,
  pidOf,
  recordNamed,
  writeExtension,
} from './support.js'

const SECRET = 'sesame-4711-open'
/** What arrived at a server that the extension may ask. */
const arrived: (string | undefined)[] = []
const outside = createServer((request, response) => {
  arrived.push(request.headers.authorization)
  response.end()
}).listen(0, '127.0.0.1')
await once(outside, 'listening')
t.teardown(() => {
  outside.close()
  outside.closeAllConnections()
})
const net = `127.0.0.1:${(outside.address() as AddressInfo).port}`
const daemon = await daemonWithBackends(t, ['secrets', 'activity'])
const { client, workspace } = daemon
const ID = 'eve.set'
const MANIFEST = {
  publisher: 'eve',
  name: 'set',
  version: '1.0.0',
  server: 'server.js',
  permissions: { daemon: ['GET /activity'], sandbox: [`net:${net}`] },
  contributes: {
    settings: [
      { key: 'greeting', type: 'string', title: 'Greeting', default: 'Hello' },
      { key: 'size', type: 'enum', title: 'Size', enum: ['small', 'large'] },
      { key: 'count', type: 'number', title: 'Count' },
      { key: 'token', type: 'string', title: 'Token', secret: true },
    ],
  },
}
const SERVER = `export const activate = host => {
  host.routes.handle('GET /send', {}, async () => {
    const { token } = await host.settings.get()
    await host.fetch('http://${net}/', { headers: { authorization: 'Bearer ' + token } })
    return { body: { token } }
  })
}
`
const FILE = join(workspace, '.sandbox/config/extension-settings.json')
writeExtension(daemon, 'set', MANIFEST, { 'server.js': SERVER })
await listedUntil(daemon, list => list.pending.find(({ id }) => id === ID))
const settings = () => client.call('GET /extensions/{id}/settings', { id: ID })
const set = async (values: object) => {
  const path = `/extensions/${ID}/settings`
  return daemon.fetch(path, { method: 'POST', body: JSON.stringify({ settings: values }) })
}

t.test('settings have their defaults, also while the extension waits for approval', async t => {
  t.same(await settings(), { settings: { greeting: 'Hello' }, secretsSet: [] })
  await approvePending(daemon, ID)
})

t.test('a key that is not declared, and a value of another type, are refused and store nothing', async t => {
  t.equal((await set({ greeting: 'Hi', other: 1 })).status, 422)
  t.equal((await set({ greeting: 1 })).status, 400)
  t.equal((await set({ size: 'huge' })).status, 400)
  t.notOk(existsSync(FILE))
  t.same(await settings(), { settings: { greeting: 'Hello' }, secretsSet: [] })
})

t.test('values are replaced, and a secret one is in the store of secrets alone, which it makes', async t => {
  t.equal((await set({ greeting: 'Hi', size: 'large', token: SECRET })).status, 200)
  const answer = await settings()
  t.same(answer, { settings: { greeting: 'Hi', size: 'large' }, secretsSet: ['token'] })
  t.notMatch(readFileSync(FILE, 'utf8'), SECRET)
  t.notMatch(daemon.logged.join('\n'), SECRET)
  await set({ count: 3 })
  t.same(await settings(), { settings: { greeting: 'Hello', count: 3 }, secretsSet: ['token'] })
  await set({ count: 3, token: '' })
  t.same((await settings()).secretsSet, [])
  await set({ count: 4, token: SECRET })
  t.equal(inGit(workspace, 'status', '--porcelain', '--', FILE).trim().slice(0, 2), '??', 'people can commit it')
})

t.test('a backend sends a secret setting by its reference, and the server gets the value', async t => {
  await listedUntil(daemon, list => list.extensions.find(({ backend }) => backend?.state === 'running'))
  const answer = await (await daemon.fetch(`/x/${ID}/send`)).json()
  t.same(answer, { token: `{{secret:ext/${ID}/token}}` })
  t.same(arrived, [`Bearer ${SECRET}`])
  t.notMatch(daemon.logged.join('\n'), SECRET)
})

t.test('readiness says what others would miss', async t => {
  const check = async (id: string) =>
    (await client.call('GET /extensions/{id}/readiness', { id: ID })).checks.find(each => each.id === id)
  await listedUntil(daemon, list => list.extensions.find(({ backend }) => backend?.state === 'running'))
  t.match(await check('server'), { status: 'pass' })
  t.match(await check('permissions'), { status: 'warn', detail: /GET \/activity/ })
  t.match(await check('git'), { status: 'warn', detail: /not committed/ })
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-q', '-m', 'all')
  t.match(await check('git'), { status: 'pass' })
  writeExtension(
    daemon,
    'set',
    { ...MANIFEST, entry: 'page.js', contributes: { ...MANIFEST.contributes, bin: 'bin' } },
    { 'server.js': `import other from 'left-pad'\n${SERVER}`, 'note.txt': `the token is ${SECRET}` },
  )
  t.match(await check('files'), { status: 'fail', detail: /page\.js.*bin/ })
  t.match(await check('server'), { status: 'fail', detail: /left-pad/ })
  t.match(await check('secrets'), { status: 'fail', detail: /note\.txt holds the value of the secret/ })
  const answer = JSON.stringify(await client.call('GET /extensions/{id}/readiness', { id: ID }))
  t.notMatch(answer, SECRET)
  writeExtension(daemon, 'set', MANIFEST, { 'server.js': SERVER })
})

t.test('a removal does what its plan says, and leaves other files', async t => {
  writeFileSync(join(workspace, 'kept.txt'), 'kept')
  const { pid } = await listedUntil(daemon, list => {
    const found = list.extensions.find(each => each.id === ID && each.backend?.state === 'running')
    return found && { pid: pidOf(found) }
  })
  const plan = await client.call('GET /extensions/{id}/removal', { id: ID })
  t.match(plan, {
    source: 'workspace',
    settings: exactly({ key: 'count', secret: false }, { key: 'token', secret: true }),
    processes: exactly(),
  })
  const folders = plan.files.map(({ path }) => path)
  t.same(folders, ['.sandbox/config/workspace-extensions/set', 'data/eve.set'])
  t.same(await client.call('POST /extensions/{id}/remove', { id: ID }), {
    ok: true,
    connections: [],
    rebuildNeeded: false,
  })
  t.notOk(isRunning(pid))
  t.notOk(existsSync(join(workspace, folders[0]!)))
  t.notOk(existsSync(join(daemon.data, 'extensions', folders[1]!)))
  t.notMatch(readFileSync(FILE, 'utf8'), 'eve.set')
  t.notOk((await client.call('GET /secrets')).keys.some(key => key.includes('eve')))
  t.equal(readFileSync(join(workspace, 'kept.txt'), 'utf8'), 'kept')
  await t.rejects(recordNamed(daemon, ID), /not listed/)
  writeExtension(daemon, 'set', MANIFEST, { 'server.js': SERVER })
  const again = await listedUntil(daemon, list => list.pending.find(({ id }) => id === ID))
  t.match(again, { approvedBefore: false }, 'its approval is gone too')
  t.same(await settings(), { settings: { greeting: 'Hello' }, secretsSet: [] })
})
