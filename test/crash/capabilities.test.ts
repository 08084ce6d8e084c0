import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Client } from '../../sdk/client.js'
import { inGit, spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { committed } from '../support/servers/git-server.js'
import { CAPABILITIES_POINTS, dies, whereIn } from './failpoints/failpoints.js'

const POINTS = CAPABILITIES_POINTS.filter(point => point.startsWith('capabilities.suggestion.'))

for (const point of POINTS) {
  void t.test(`killed at ${point}, a dismissed suggestion stays dismissed`, async t => {
    const where = whereIn(t, { '.mcp.json': JSON.stringify({ mcpServers: { one: { command: 'one' } } }) })
    await dies(t, where, point, ({ once }) => once.call('DELETE /capabilities/recommendations/{card}', { card: 'mcp' }))
    const { client } = await spawnDaemon(t, where)
    t.same((await client.call('GET /capabilities')).recommendations, [])
  })
}

void t.test('killed between the checkout of a plugin and its record, the one before is whole, or none is', async t => {
  const where = whereIn(t, { 'far/skills/one/SKILL.md': '---\nname: one\n---\nFirst.\n' })
  const origin = join(where.workspace, 'far')
  inGit(origin, 'init', '-q')
  const first = committed(origin)
  writeFileSync(join(origin, 'skills/one/SKILL.md'), '---\nname: one\n---\nSecond.\n')
  const second = committed(origin)
  const connect = async (client: Client, ref: string) => {
    for await (const _ of await client.call('POST /capabilities', {
      ...{ id: 'far', kind: 'plugin', config: { url: 'far', ref } },
    } as never));
  }
  const kept = join(where.data, 'capabilities/plugins')
  const point = 'capabilities.plugin.placed'
  await dies(t, where, point, ({ once }) => connect(once, first))
  let daemon = await spawnDaemon(t, where)
  t.same((await daemon.client.call('GET /capabilities')).capabilities, [])
  t.same(readdirSync(kept), [])
  await connect(daemon.client, first)
  await daemon.terminate()
  await dies(t, where, point, ({ once }) => connect(once, second))
  daemon = await spawnDaemon(t, where)
  t.match(
    (await daemon.client.call('GET /capabilities')).capabilities,
    exactly({ id: 'far', config: { ref: first }, status: { state: 'active' } }),
  )
  const names = readdirSync(join(kept, 'far')).sort()
  t.match(names, exactly(new RegExp(`^${first}-\\w+$`), new RegExp(`^${first}-\\w+\\.json$`)))
  t.match(readFileSync(join(kept, 'far', names[0]!, 'skills/one/SKILL.md'), 'utf8'), /First/)
  const { body } = await daemon.client.call('GET /skills/read', { id: 'plugin:far:one' })
  t.equal(body, 'First.\n')
})
