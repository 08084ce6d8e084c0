import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inGit } from '../../support/daemon.js'
import { committed } from '../../support/servers/git-server.js'
import { inner } from '../agent/support.js'
import { daemonWithBackends, listedUntil } from './support.js'

const daemon = await daemonWithBackends(t, ['activity', 'system'])
const { client, workspace } = daemon
const origin = join(workspace, 'notes')
mkdirSync(origin)
inGit(origin, 'init', '-q')
const write = (version: string, more: object, server: string): string => {
  const manifest = { publisher: 'ada', name: 'notes', version, server: 'server.js', ...more }
  writeFileSync(join(origin, 'intentic-extension.json'), JSON.stringify(manifest))
  writeFileSync(join(origin, 'server.js'), server)
  return committed(origin)
}
const contributes = { settings: [{ key: 'tone', type: 'string', title: 'Tone' }] }
const GOOD = `export const activate = async host => { await host.storage.set('seen', 1) }\n`
const first = write('1.0.0', { contributes }, GOOD)
const id = 'ada.notes'
const until = async (find: Parameters<typeof listedUntil>[1]) => {
  // The first probe comes after 15 s.
  for (const end = Date.now() + 25_000; ;)
    try {
      return await listedUntil(daemon, find)
    } catch (error) {
      if (Date.now() > end) throw error
    }
}

t.test('an update whose backend does not run is taken back where its policy says so', async t => {
  const { digest } = await client.call('POST /extensions/install/preview', { url: 'notes', ref: first })
  for await (const _ of await client.call('POST /extensions/install', { url: 'notes', ref: first, digest }));
  await client.call('POST /extensions/{id}/settings', { id, settings: { tone: 'kind' } })
  await client.call('POST /extensions/{id}/update-policy', { id, updates: 'auto' })
  const bad = write('2.0.0', { contributes }, `export const activate = () => { throw new Error('it cannot start') }\n`)
  const began = Date.now()
  await client.call('POST /extensions/{id}/update', { id, ref: bad })
  await until(({ extensions }) => extensions.find(each => each.id === id && each.health?.autoReverted))
  t.ok(Date.now() - began < 20_000, 'within 20 s')
  const { extensions } = await client.call('GET /extensions')
  const found = extensions.find(each => each.id === id)
  t.match(found, {
    commit: first,
    manifest: { version: '1.0.0' },
    previous: { ref: bad },
    health: { state: 'unhealthy', detail: /it cannot start|its backend is starting/, fromRef: bad, autoReverted: true },
  })
  await listedUntil(daemon, list => list.extensions.find(each => each.id === id && each.backend?.state === 'running'))
  t.match(await client.call('GET /extensions/{id}/settings', { id }), { settings: { tone: 'kind' } })
  const { events } = await inner(daemon, 'GET /activity', { limit: 50 })
  t.ok(events.some(({ type }) => type === 'extension.auto-reverted'))
})

t.test('a program that starts by itself and does not run makes an update unhealthy; the owner decides', async t => {
  await client.call('POST /extensions/{id}/update-policy', { id, updates: 'notify' })
  const processes = [{ name: 'tick', command: 'node -e "process.exit(4)"', autoStart: true, restart: 'never' }]
  const ref = write('3.0.0', { contributes: { ...contributes, processes } }, GOOD)
  const { digest } = await client.call('POST /extensions/{id}/update/preview', { id, ref })
  await client.call('POST /extensions/{id}/update', { id, ref, digest })
  await until(({ extensions }) => extensions.find(each => each.id === id && each.health?.state === 'unhealthy'))
  const { extensions } = await client.call('GET /extensions')
  t.match(
    extensions.find(each => each.id === id),
    { commit: ref, health: { detail: /its process tick is exited: it ended with 4/ } },
  )
  await client.call('POST /extensions/{id}/revert', { id })
  const after = (await client.call('GET /extensions')).extensions.find(each => each.id === id)
  t.equal(after?.commit, first)
  t.notOk(after?.health, 'a revert ends the watch')
})
