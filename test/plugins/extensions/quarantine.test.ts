import t from 'tap'
import { walled } from '../../attack/support.js'
import { extensionDaemon } from '../../support/extensions/world.js'
import { approvePending, daemonWithBackends, listedUntil, writeExtension } from './support.js'

const EXITS = `export const activate = host => {
  host.routes.handle('GET /alive', {}, () => ({ body: { alive: true } }))
  setTimeout(() => process.exit(3), 20)
}`
const STAYS = `export const activate = host => {
  host.routes.handle('GET /alive', {}, () => ({ body: { alive: true } }))
}`

t.test('the fifth crash within 10 minutes stops a backend, until it is started again', walled(), async t => {
  const id = 'evil.exits'
  const daemon = await extensionDaemon(t, { groups: ['activity'], limits: { backoff: { first: 200, most: 2_000 } } })
  const starts: number[] = []
  await daemon.begin(id, { server: EXITS })
  let last = ''
  for (let state = daemon.world.runtime!.status(id)!; !state.detail?.startsWith('quarantined');) {
    if (state.state === 'starting' && last !== 'starting') starts.push(performance.now())
    last = state.state
    state = await daemon.until(id, now => now.state !== last || now.detail !== state.detail)
  }
  t.match(daemon.world.runtime!.status(id), { state: 'stopped', detail: 'quarantined: its process ended with 3' })
  t.equal(starts.length, 5)
  t.ok(starts[4]! - starts[3]! > starts[2]! - starts[1]!, 'each wait is longer')
  t.equal((await daemon.ask(id, '/alive')).status, 503)
  const { events } = (await (await daemon.fetch('/activity?limit=100')).json()) as { events: { type: string }[] }
  t.equal(events.filter(({ type }) => type === 'extension.quarantined').length, 1)
  t.equal(events.filter(({ type }) => type === 'extension.failed').length, 4)
  await daemon.run(id, { server: STAYS })
  t.match(await daemon.ask(id, '/alive'), { status: 200 }, 'other code ends the quarantine')
})

t.test('approving, switching on and other code end a quarantine', walled(), async t => {
  const daemon = await daemonWithBackends(t)
  const { client } = daemon
  const id = 'ada.exits'
  const manifest = { publisher: 'ada', name: 'exits', server: 'server.js' }
  writeExtension(daemon, 'exits', manifest, { 'server.js': EXITS })
  const { digest } = await listedUntil(daemon, ({ pending }) => pending.find(each => each.id === id))
  await approvePending(daemon, id)
  const backendIs = async (pattern: RegExp) => {
    for (const end = Date.now() + 60_000; ;)
      try {
        return await listedUntil(daemon, ({ extensions }) =>
          extensions.some(each => each.id === id && pattern.test(JSON.stringify(each.backend))),
        )
      } catch (error) {
        if (Date.now() > end) throw error
      }
  }
  await backendIs(/quarantined: its process ended with 3/)
  await client.call('POST /extensions/{id}/approve', { id, digest })
  await backendIs(/starts again in/)
  await client.call('POST /extensions/{id}/enabled', { id, enabled: true })
  writeExtension(daemon, 'exits', manifest, { 'server.js': STAYS })
  await backendIs(/"running"/)
})
