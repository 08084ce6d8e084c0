import t from 'tap'
import { walled } from '../../attack/support.js'
import { extensionDaemon } from '../../support/extensions/world.js'

t.test('a backend answers its routes', async t => {
  const daemon = await extensionDaemon(t)
  const status = await daemon.run('acme.notes', {
    server: `export const activate = host => {
      host.routes.handle('GET /hello/{name}', {}, request => ({ body: { hello: request.params.name } }))
    }`,
  })
  t.match(status, { state: 'running' })
  const answer = await daemon.ask('acme.notes', '/hello/world')
  t.match(answer, { status: 200, body: { hello: 'world' } })
})

t.test('a request that comes while a backend starts is answered once it runs', walled(), async t => {
  const daemon = await extensionDaemon(t)
  await daemon.begin('acme.late', {
    server: `export const activate = async host => {
      await new Promise(done => setTimeout(done, 200))
      host.routes.handle('GET /hello', {}, () => ({ body: { hello: 'late' } }))
    }`,
  })
  t.match(daemon.world.runtime!.status('acme.late'), { state: 'starting' })
  t.match(await daemon.ask('acme.late', '/hello'), { status: 200, body: { hello: 'late' } })
})

t.test('without a wall no backend runs, and its state says what to install', async t => {
  const daemon = await extensionDaemon(t, { wall: 'none' })
  t.match(await daemon.run('ada.open', { server: 'export const activate = () => {}' }), {
    state: 'error',
    detail: /install bubblewrap/,
  })
  t.equal((await daemon.ask('ada.open', '/any')).status, 503)
})

t.test(
  'one whose activate does not end has failed, and a request whose backend ends is answered',
  walled(),
  async t => {
    const daemon = await extensionDaemon(t, { limits: { startMs: 6_000, backoff: { first: 60_000, most: 60_000 } } })
    const [stuck, dies] = await Promise.all([
      daemon.run('ada.stuck', { server: 'export const activate = () => new Promise(() => {})' }),
      daemon.run('ada.dies', {
        server: `export const activate = host => {
        host.routes.handle('GET /die', {}, () => process.exit(4))
      }`,
      }),
    ])
    t.match(stuck, { state: 'error', detail: /activate did not end within 6 s; it starts again in \d+ s/ })
    t.match(dies, { state: 'running' })
    const answer = await daemon.ask('ada.dies', '/die')
    t.equal(answer.status, 503)
    await daemon.until('ada.dies', ({ state }) => state === 'error')
    t.equal((await daemon.ask('ada.dies', '/die')).status, 503)
  },
)
