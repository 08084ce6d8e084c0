import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { add } from '../capabilities/support.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'

const daemon = await daemonWith(t, ['capabilities', 'inventory', 'git', 'workspace', 'secrets', 'activity'])
const { client, workspace } = daemon
const MACHINE = { provider: 'host', address: '10.0.0.2', user: 'deploy', port: '2222', hostKey: 'ssh-ed25519 AAAA' }
const status = (id: string) => client.call('GET /capabilities/{id}/status', { id })

t.test('a machine cannot be connected before the repositories', async t => {
  await t.rejects(add(daemon, { id: 'attic', kind: 'integration', config: MACHINE }), {
    reason: 'conflict',
    message: /needs one of kind devops/,
  })
})

t.test('devops makes both repositories once, and neither goes nor gets another name', async t => {
  const frames = await add(daemon, { id: 'devops', kind: 'devops', config: {} })
  t.match(frames.at(-1), { kind: 'result', status: { state: 'active' } })
  for (const name of ['intent', 'desired-state'])
    t.equal(inGit(join(workspace, name), 'rev-list', '--count', 'HEAD').trim(), '1')
  t.match(await client.call('GET /inventory'), { ready: true, entries: exactly() })
  await add(daemon, { id: 'devops', kind: 'devops', config: {} })
  await t.rejects(add(daemon, { id: 'other', kind: 'devops', config: {} }), {
    reason: 'conflict',
    message: /devops is the connection of kind devops already/,
  })
  await t.rejects(add(daemon, { id: 'devops', kind: 'devops', config: { x: 'y' } }), {
    reason: 'invalid',
    message: /config.x/,
  })
  await t.rejects(client.call('DELETE /capabilities/{id}', { id: 'devops' }), { message: /cannot be removed/ })
  await t.rejects(client.call('POST /capabilities/{id}/rename', { id: 'devops', to: 'ops' }), {
    message: /cannot be renamed/,
  })
})

t.test('a machine is an entry, waits for its key, and goes with its entry', async t => {
  const frames = await add(daemon, { id: 'attic', kind: 'integration', config: MACHINE })
  t.match(frames.at(-1), { status: { state: 'pending', detail: /as HOST_SSH_KEY_ATTIC/ } })
  const { entries } = await client.call('GET /inventory')
  const { provider: _, port: __, ...values } = MACHINE
  t.match(entries, exactly({ kind: 'backend', provider: 'host', name: 'attic', values: { ...values, port: 2222 } }))
  await client.call('POST /secrets', { key: 'HOST_SSH_KEY_ATTIC', value: 'a-key-of-a-machine' })
  t.match(await status('attic'), { state: 'active' })
  await client.call('POST /inventory', {
    kind: 'app',
    name: 'shop',
    values: { source: 'shop' },
    on: 'attic',
    expose: '',
  })
  await t.rejects(client.call('DELETE /capabilities/{id}', { id: 'attic' }), { message: /named by shop/ })
  t.match(await status('attic'), { state: 'active' })
  await client.call('DELETE /inventory/{name}', { name: 'shop' })
  await client.call('DELETE /capabilities/{id}', { id: 'attic' })
  t.match(await client.call('GET /inventory'), { entries: exactly() })
})

t.test('a machine says where its file is unreadable, and leaves an entry that is no machine', async t => {
  const intent = join(workspace, 'intent')
  const file = join(intent, 'deploy.config.json')
  await add(daemon, { id: 'attic', kind: 'integration', config: MACHINE })
  const whole = readFileSync(file, 'utf8')
  writeFileSync(file, '{')
  t.match(await status('attic'), { state: 'error', detail: /deploy.config.json: line 1, column 2/ })
  writeFileSync(file, whole)
  const { provider: _, port: __, ...values } = MACHINE
  await client.call('POST /inventory', { kind: 'backend', provider: 'host', name: 'cellar', values })
  const app = { kind: 'app', name: 'attic', values: { source: 'shop' }, on: 'cellar', expose: '' } as const
  await client.call('POST /inventory', app)
  await client.call('DELETE /capabilities/{id}', { id: 'attic' })
  t.match((await client.call('GET /inventory')).entries, exactly({ name: 'attic', kind: 'app' }, { name: 'cellar' }))
  await client.call('DELETE /inventory/{name}', { name: 'attic' })
  await client.call('DELETE /inventory/{name}', { name: 'cellar' })
})

t.test('a machine can be disconnected when the repository is gone', async t => {
  const intent = join(workspace, 'intent')
  await add(daemon, { id: 'attic', kind: 'integration', config: MACHINE })
  renameSync(intent, join(workspace, 'away'))
  t.match(await status('attic'), { state: 'error', detail: /no machine attic/ })
  await client.call('DELETE /capabilities/{id}', { id: 'attic' })
  renameSync(join(workspace, 'away'), intent)
  await client.call('DELETE /inventory/{name}', { name: 'attic' })
})

t.test('what cannot be an entry is refused, and nothing is written', async t => {
  const before = inGit(join(workspace, 'intent'), 'rev-parse', 'HEAD')
  const refused = (id: string, config: { [field: string]: string }, message: RegExp) =>
    t.rejects(add(daemon, { id, kind: 'integration', config }), { message })
  await refused('a-b', MACHINE, /id: expected letters, digits and _/)
  await refused('attic', { ...MACHINE, provider: 'moon' }, /provider: expected one of host/)
  await refused('attic', { ...MACHINE, address: '-x' }, /values.address/)
  await refused('attic', { ...MACHINE, moon: 'x' }, /config.moon/)
  t.equal(inGit(join(workspace, 'intent'), 'rev-parse', 'HEAD'), before)
})

t.test('a monorepo is a new repository of packages, and stays', async t => {
  t.match((await add(daemon, { id: 'house', kind: 'monorepo', config: {} })).at(-1), { status: { state: 'active' } })
  const at = join(workspace, 'house')
  t.match(JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')), {
    name: 'house',
    workspaces: exactly('apps/*', 'packages/*'),
  })
  t.equal(inGit(at, 'status', '--porcelain'), '')
  await add(daemon, { id: 'house', kind: 'monorepo', config: {} })
  t.equal(inGit(at, 'rev-list', '--count', 'HEAD').trim(), '1')
  mkdirSync(join(workspace, 'mine'))
  await t.rejects(add(daemon, { id: 'mine', kind: 'monorepo', config: {} }), {
    message: /is a folder of the workspace already/,
  })
  await t.rejects(client.call('DELETE /capabilities/{id}', { id: 'house' }), { message: /cannot be removed/ })
  t.ok(existsSync(at))
})

t.test('the cards say what is single and what comes first', async t => {
  const { cards } = await client.call('GET /capabilities/catalog')
  const of = (kind: string) => cards.find(each => each.kind === kind)
  t.match(of('devops'), { singleton: true, requires: exactly(), connected: true })
  t.match(of('integration'), { singleton: false, requires: exactly('devops') })
  t.match(of('monorepo'), { singleton: false, requires: exactly() })
})
