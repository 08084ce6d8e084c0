import t from 'tap'
import { spawnDaemon } from '../support/daemon.js'
import { CAPABILITIES_POINTS, dies, whereIn } from './failpoints/failpoints.js'

for (const point of CAPABILITIES_POINTS) {
  void t.test(`killed at ${point}, a dismissed suggestion stays dismissed`, async t => {
    const where = whereIn(t, { '.mcp.json': JSON.stringify({ mcpServers: { one: { command: 'one' } } }) })
    await dies(t, where, point, ({ once }) => once.call('DELETE /capabilities/recommendations/{card}', { card: 'mcp' }))
    const { client } = await spawnDaemon(t, where)
    t.same((await client.call('GET /capabilities')).recommendations, [])
  })
}
