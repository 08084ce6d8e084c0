import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inGit } from '../../support/daemon.js'
import { committed } from '../../support/servers/git-server.js'
import { inner } from '../agent/support.js'
import { daemonWithBackends, listedUntil } from './support.js'

const daemon = await daemonWithBackends(t, ['activity', 'system'])
const { client, workspace } = daemon
/** Makes a repository of the workspace, and the function that commits a version of its extension. */
const repository = (name: string) => {
  const origin = join(workspace, name)
  mkdirSync(origin)
  inGit(origin, 'init', '-q')
  return (version: string, more: object, server: string): string => {
    const manifest = { publisher: 'ada', name, version, server: 'server.js', ...more }
    writeFileSync(join(origin, 'intentic-extension.json'), JSON.stringify(manifest))
    writeFileSync(join(origin, 'server.js'), server)
    return committed(origin)
  }
}
const write = repository('notes')
const contributes = { settings: [{ key: 'tone', type: 'string', title: 'Tone' }] }
const GOOD = `export const activate = async host => {
  const before = (await host.storage.get('starts')) ?? 0
  await host.storage.set('starts', before + 1)
  host.routes.handle('GET /before', {}, () => ({ body: before }))
}
`
const first = write('1.0.0', { contributes }, GOOD)
const id = 'ada.notes'
const install = async (url: string, ref: string) => {
  const { digest } = await client.call('POST /extensions/install/preview', { url, ref })
  for await (const _ of await client.call('POST /extensions/install', { url, ref, digest }));
}
const until = async (find: Parameters<typeof listedUntil>[1]) => {
  // The first probe comes after 15 s.
  for (const end = Date.now() + 25_000; ;)
    try {
      return await listedUntil(daemon, find)
    } catch (error) {
      if (Date.now() > end) throw error
    }
}

/** Another extension, whose quarantines pass beside the probes of the first. */
const exits = {
  id: 'ada.exits',
  write: repository('exits'),
  update: (ref: string) => client.call('POST /extensions/{id}/update', { id: 'ada.exits', ref }),
  backendIs: (version: string, pattern: RegExp) =>
    until(({ extensions }) =>
      extensions.find(
        each =>
          each.id === 'ada.exits' && each.manifest.version === version && pattern.test(JSON.stringify(each.backend)),
      ),
    ),
}
const EXITS = 'export const activate = () => setTimeout(() => process.exit(3), 20)\n'
const QUARANTINED = /"stopped","detail":"quarantined: its process ended with 3"/
const RUNNING = /"running"/

t.test('an update whose backend does not run is taken back where its policy says so', async t => {
  await install('notes', first)
  await install('exits', exits.write('1.0.0', {}, EXITS))
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
  t.equal(await (await daemon.fetch(`/x/${id}/before`)).json(), 1, 'what it stored is still there')
  const { events } = await inner(daemon, 'GET /activity', { limit: 50 })
  t.ok(events.some(({ type }) => type === 'extension.auto-reverted'))
  await exits.backendIs('1.0.0', QUARANTINED)
  await exits.update(exits.write('2.0.0', {}, GOOD))
  await t.resolves(exits.backendIs('2.0.0', RUNNING), 'an update ends a quarantine')
})

t.test('a program that starts by itself and does not run makes an update unhealthy; the owner decides', async t => {
  await exits.update(exits.write('3.0.0', {}, EXITS))
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
  await exits.backendIs('3.0.0', QUARANTINED)
  await client.call('POST /extensions/{id}/revert', { id: exits.id })
  await t.resolves(exits.backendIs('2.0.0', RUNNING), 'a revert ends a quarantine')
})
