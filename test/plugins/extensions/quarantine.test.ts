import t from 'tap'
import { Backoff } from '../../../plugins/extensions/backend/process/backoff.js'
import { BACKEND_LIMITS } from '../../../plugins/extensions/backend/process/limits.js'
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
  const [approved, switched] = ['ada.exits', 'ada.ends'] as const
  const manifest = (id: string) => ({ publisher: 'ada', name: id.slice(4), server: 'server.js' })
  const write = (id: string, server: string) =>
    writeExtension(daemon, id.slice(4), manifest(id), { 'server.js': server })
  for (const id of [approved, switched]) {
    write(id, EXITS)
    await listedUntil(daemon, ({ pending }) => pending.find(each => each.id === id))
  }
  const { digest } = await approvePending(daemon, approved)
  await approvePending(daemon, switched)
  const backendIs = async (id: string, pattern: RegExp) => {
    for (const end = Date.now() + 60_000; ;)
      try {
        return await listedUntil(daemon, ({ extensions }) =>
          extensions.some(each => each.id === id && pattern.test(JSON.stringify(each.backend))),
        )
      } catch (error) {
        if (Date.now() > end) throw error
      }
  }
  for (const id of [approved, switched]) await backendIs(id, /quarantined: its process ended with 3/)
  await client.call('POST /extensions/{id}/approve', { id: approved, digest })
  await client.call('POST /extensions/{id}/enabled', { id: switched, enabled: true })
  for (const id of [approved, switched]) await backendIs(id, /starts again in/)
  write(approved, STAYS)
  await backendIs(approved, /"running"/)
})

t.test('the wait before a start doubles, and begins anew after 5 minutes of running', t => {
  const { backoff, healthyMs } = BACKEND_LIMITS
  const waits = new Backoff(BACKEND_LIMITS)
  const around = (wait: number | undefined, ms: number) => t.ok(Math.abs(wait! - ms) <= ms * 0.2, `${wait} of ${ms}`)
  around(waits.crashed(0, 0), backoff.first)
  around(waits.crashed(healthyMs - 1, 1_000_000), 2 * backoff.first)
  around(waits.crashed(0, 2_000_000), 4 * backoff.first)
  around(waits.crashed(healthyMs, 3_000_000), backoff.first)
  t.equal(healthyMs, 5 * 60_000)
  t.end()
})
