import t from 'tap'
import { extensionDaemon } from '../../support/extensions/world.js'

t.test('a backend answers its routes', async t => {
  const daemon = await extensionDaemon(t)
  const status = await daemon.run('acme.notes', {
    server: `export const activate = host => {
      host.routes.handle('GET /hello/{name}', {}, request => ({ body: { hello: request.params.name, env: Object.keys(process.env), caller: request.caller, headers: request.headers } }))
    }`,
  })
  t.match(status, { state: 'running' })
  const answer = await daemon.ask('acme.notes', '/hello/world')
  t.equal(answer.status, 200)
})
