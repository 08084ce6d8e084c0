import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ApplyFrame, ContributedKind, KindEntry } from '../../../plugins/capabilities/contract.js'
import { refuse } from '../../../sdk/index.js'
import type { Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { capabilitiesDaemon, inner, type FakeVault } from './support.js'

const SERVED: ContributedKind = {
  storedBy: 'capabilities',
  kind: 'disk',
  card: {
    name: 'Disk',
    category: 'disks',
    description: 'A disk of a test.',
    fields: [
      { key: 'server', label: 'Server' },
      { key: 'password', label: 'Password', secret: true },
    ],
  },
  category: { id: 'disks', label: 'Disks', hint: 'Folders elsewhere.' },
  mainSecret: 'password',
  calls: {
    check: 'disk.check',
    apply: 'disk.apply',
    status: 'disk.status',
    release: 'disk.release',
    forget: 'disk.forget',
    rename: 'disk.rename',
  },
}
const KEPT: ContributedKind = {
  storedBy: 'group',
  kind: 'service',
  calls: { connect: 'service.connect', status: 'service.status' },
}

interface World {
  readonly daemon: Support
  readonly vault: FakeVault
  /** The calls that the group of the kind got, with their inputs. */
  readonly got: [call: string, input: object][]
  /** Disks that are in use, and cannot be removed. */
  readonly used: Set<string>
}

/** A daemon with a group that serves the kind `disk` and keeps connections of the kind `service` itself. */
const world = async (t: Test): Promise<World> => {
  const { daemon, vault } = await capabilitiesDaemon(t)
  const got: World['got'] = []
  const used = new Set<string>()
  const { calls, events } = daemon.kernel
  const serve = (call: string, answer: (input: never) => unknown) =>
    calls.add(call, 'test', async (_, input) => {
      got.push([call, structuredClone(input) as object])
      return answer(input as never)
    })
  serve('disk.check', ({ config }: KindEntry) =>
    config.server === 'nowhere' ? refuse('unprocessable', 'config.server: nowhere has no disks') : { ok: true },
  )
  serve('disk.apply', async function* ({ secrets }: KindEntry) {
    yield { kind: 'log', message: `mounting with ${secrets.password}` }
    if (secrets.password !== 'open sesame') refuse('dependency', `the server refused ${secrets.password}`)
    yield { kind: 'status', status: { state: 'active', checkedAt: 1 } }
  } as never)
  serve('disk.status', () => ({ state: 'pending', detail: 'it is being mounted', checkedAt: 1 }))
  serve('disk.release', ({ id }: { id: string }) =>
    used.has(id) ? refuse('conflict', `${id} is in use`) : { ok: true },
  )
  serve('disk.forget', () => ({ ok: true }))
  serve('disk.rename', () => ({ ok: true }))
  serve('service.connect', () => ({ state: 'active', checkedAt: 1 }))
  events.contribute('capabilities.kinds', 'test', async () => [SERVED, KEPT])
  return { daemon, vault, got, used }
}

const add = async ({ client }: Support, given: object): Promise<ApplyFrame[]> => {
  const frames: ApplyFrame[] = []
  for await (const frame of await client.call('POST /capabilities', given as never)) frames.push(frame)
  return frames
}
const DISK = { id: 'files', kind: 'disk', config: { server: 'nas', password: 'open sesame' } }

t.test(
  'a kind of another group is checked and connected by its group, kept here, and its secrets never shown',
  async t => {
    const { daemon, vault, got } = await world(t)
    const { cards, categories } = await daemon.client.call('GET /capabilities/catalog')
    t.match(cards.at(-1), { id: 'disk', kind: 'disk', name: 'Disk', connected: false })
    t.match(categories.at(-1), { id: 'disks' })
    const config = (more: object) => ({ ...DISK, config: { ...DISK.config, ...more } })
    await t.rejects(add(daemon, config({ server: 'nowhere' })), { reason: 'unprocessable', message: /nowhere has no/ })
    await t.rejects(add(daemon, config({ port: 1 })), {
      reason: 'invalid',
      message: /config\.port: expected only server/,
    })
    await t.rejects(add(daemon, config({ password: 'wrong one' })), {
      reason: 'dependency',
      message: 'the server refused [redacted]',
    })
    t.same(got.at(-1), ['disk.forget', { id: 'files' }], 'what the attempt left is removed')
    t.match(await add(daemon, DISK), {
      0: { kind: 'log', message: 'mounting with [redacted]' },
      2: { kind: 'result', id: 'files', status: { state: 'active' } },
    })
    t.same([...vault.values], [['files/password', 'open sesame']])
    const { capabilities } = await daemon.client.call('GET /capabilities')
    t.match(
      capabilities,
      exactly({ id: 'files', kind: 'disk', config: { server: 'nas' }, secrets: exactly('password') }),
    )
    t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'files' }), { state: 'pending' })
  },
)

t.test('its group gets a connection with its values, unless it was changed by hand or the vault is locked', async t => {
  const { daemon, vault } = await world(t)
  await add(daemon, DISK)
  const entry = (kind = 'disk') => inner(daemon, 'capabilities.entry', { id: 'files', kind })
  t.same(await entry(), { id: 'files', config: { server: 'nas' }, secrets: { password: 'open sesame' } })
  await t.rejects(entry('vpn'), { reason: 'not-found', message: /of kind vpn/ })
  vault.open = false
  await t.rejects(entry(), { reason: 'unavailable', message: /store of secrets is locked/ })
  vault.open = true
  const file = join(daemon.workspace, '.sandbox/config/capabilities.json')
  writeFileSync(file, readFileSync(file, 'utf8').replace('nas', 'elsewhere'))
  await t.rejects(entry(), { reason: 'unprocessable', message: /changed by hand/ })
})

t.test('its group is asked before a connection is removed, and carries what it keeps to another id', async t => {
  const { daemon, vault, got, used } = await world(t)
  await add(daemon, DISK)
  await daemon.client.call('POST /capabilities/{id}/rename', { id: 'files', to: 'nas' })
  t.same(got.at(-1), ['disk.rename', { id: 'files', to: 'nas' }])
  await t.rejects(daemon.client.call('POST /capabilities/{id}/secret', { id: 'nas', value: 'wrong one' }), {
    reason: 'dependency',
    message: 'the server refused [redacted]',
  })
  t.same([...vault.values], [['nas/password', 'open sesame']], 'the old value stays')
  used.add('nas')
  await t.rejects(daemon.client.call('DELETE /capabilities/{id}', { id: 'nas' }), { message: 'nas is in use' })
  t.equal((await daemon.client.call('GET /capabilities')).capabilities.length, 1)
  used.clear()
  await daemon.client.call('DELETE /capabilities/{id}', { id: 'nas' })
  t.same(got.at(-1), ['disk.forget', { id: 'nas' }])
  t.same([...vault.values], [])
})

t.test('a kind whose connections its group keeps is connected by that group', async t => {
  const { daemon, got } = await world(t)
  const given = { id: 'mail', kind: 'service', config: { address: 'x' } }
  t.match((await add(daemon, given)).at(-1), { kind: 'result', id: 'mail', status: { state: 'active' } })
  t.same(got, [['service.connect', given]])
})

t.test('a contribution reaches no call of a group that does not add to the point, and no route', async t => {
  const { daemon } = await world(t)
  const { calls } = daemon.kernel
  const caller = { kind: 'plugin', actor: 'sandbox:capabilities', role: 'owner' } as const
  const principal = { plugin: 'capabilities', caller, needed: new Set<string>(), late: new Set<string>() }
  const gives = (plugin: string) => plugin === 'test' || plugin === 'system'
  for (const call of ['secrets.names', 'GET /info', 'no.such'])
    await t.rejects(
      calls.through(principal, call, {}, { gives }),
      { reason: 'forbidden', message: /may not make/ },
      call,
    )
  t.match(await calls.through(principal, 'disk.status', {}, { gives }), { state: 'pending' })
})

t.test('a single kind is connected once, also while the first is being connected', async t => {
  const { daemon } = await world(t)
  const { calls, events } = daemon.kernel
  const [began, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  calls.add('vpn.apply', 'test', async () =>
    (async function* () {
      began.resolve()
      await gate.promise
      yield { kind: 'status', status: { state: 'active', checkedAt: 1 } }
    })(),
  )
  const { mainSecret: _, ...served } = SERVED
  const card = { ...SERVED.card, fields: [], singleton: true as const }
  const single = { ...served, kind: 'vpn', card, calls: { ...SERVED.calls, apply: 'vpn.apply' } } as ContributedKind
  events.contribute('capabilities.kinds', 'single', async () => [single])
  const connect = (id: string) => add(daemon, { id, kind: 'vpn', config: {} })
  const first = connect('one')
  await began.promise
  const second = connect('two').then(
    () => 'connected',
    (error: Error) => error.message,
  )
  await Promise.race([second, new Promise(resolve => setTimeout(resolve, 300))])
  gate.resolve()
  t.equal(await second, 'one is the connection of kind vpn already: there can be one only')
  t.match((await first).at(-1), { kind: 'result', id: 'one', status: { state: 'active' } })
  await t.rejects(connect('two'), { message: /there can be one only/ })
})
