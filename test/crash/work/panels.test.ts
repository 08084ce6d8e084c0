import t from 'tap'
import { SHOWN_SERVER } from '../../support/servers/shown-servers.js'
import { endTerminals, spawnDaemon } from '../../support/daemon.js'
import { dies, PANELS_POINTS, whereIn } from '../failpoints/failpoints.js'

const FILES = {
  'package.json': JSON.stringify({
    scripts: { dev: `${process.execPath} ${SHOWN_SERVER} '{"listen":"127.0.0.1","port":'$PORT'}'` },
  }),
}
const ROOT = { repo: 'root' } as const

for (const point of PANELS_POINTS)
  void t.test(`a panel starts on its port after the daemon was killed at ${point}`, async t => {
    const where = whereIn(t, FILES)
    t.teardown(() => endTerminals(where.data))
    await dies(t, where, point, ({ once: client }) => client.call('POST /panels/{repo}/start', ROOT))
    const { client } = await spawnDaemon(t, where)
    t.match(await client.call('GET /panels/{repo}', ROOT), { running: false, healthy: false })
    await client.call('POST /panels/{repo}/start', ROOT)
    t.match(await client.call('GET /panels/{repo}', { ...ROOT, wait: 'healthy' }), { running: true, healthy: true })
    await client.call('POST /panels/{repo}/stop', ROOT)
  })

t.test('a panel goes on while its daemon is killed, and is found again', async t => {
  const where = whereIn(t, FILES)
  t.teardown(() => endTerminals(where.data))
  const first = await spawnDaemon(t, where)
  const started = await first.client.call('POST /panels/{repo}/start', ROOT)
  t.ok((await first.client.call('GET /panels/{repo}', { ...ROOT, wait: 'healthy' })).healthy)
  const server = async ({ client }: Pick<typeof first, 'client'>) => {
    for (;;) {
      const found = (await client.call('GET /ports')).ports.find(({ port }) => port === started.port)
      if (found) return found.pid
    }
  }
  const pid = await server(first)
  await first.kill9()
  const second = await spawnDaemon(t, where)
  const { client } = second
  const panel = await client.call('GET /panels/{repo}', ROOT)
  t.match(panel, { running: true, healthy: true, port: started.port, session: started.session })
  t.equal(await server(second), pid, 'the same process serves')
  t.match(await client.call('POST /panels/{repo}/start', ROOT), { session: started.session, port: started.port })
  await client.call('POST /panels/{repo}/stop', ROOT)
  t.match(await client.call('GET /panels/{repo}', ROOT), { running: false, healthy: false })
})
