import t from 'tap'
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

t.test('without a wall no backend runs, and its state says what to install', async t => {
  const daemon = await extensionDaemon(t, { wall: 'none' })
  t.match(await daemon.run('ada.open', { server: 'export const activate = () => {}' }), {
    state: 'error',
    detail: /install bubblewrap/,
  })
  t.equal((await daemon.ask('ada.open', '/any')).status, 503)
})
