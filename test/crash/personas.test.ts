import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { dies, PERSONAS_POINTS } from './failpoints/failpoints.js'

const ONE = { id: 'a', label: 'one', capabilities: ['x'], brief: 'one '.repeat(400) }
const OTHER = { id: 'a', label: 'other', capabilities: ['y'], brief: 'other '.repeat(300) }

t.test('after a kill between saves of two owners, the file has one of the two complete cards', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  for (const writes of [2, 7]) {
    const daemon = await spawnDaemon(t, where)
    let done = 0
    const enough = Promise.withResolvers<void>()
    const writer = async (card: typeof ONE) => {
      for (;;) {
        await daemon.once.call('POST /personas', card)
        if (++done >= writes) enough.resolve()
      }
    }
    const all = [writer(ONE), writer(OTHER)].map(work => work.catch(() => {}))
    await enough.promise
    await daemon.kill9()
    await Promise.all(all)
    const next = await spawnDaemon(t, where)
    const [card] = (await next.client.call('GET /personas')).personas
    const { connected: _connected, ...kept } = card!
    t.ok(
      [ONE, OTHER].some(each => JSON.stringify({ ...each }) === JSON.stringify({ ...each, ...kept })),
      `after ${writes}`,
    )
    t.same(Object.keys(JSON.parse(readFileSync(join(where.workspace, '.sandbox/config/personas.json'), 'utf8'))), ['a'])
    await next.terminate()
  }
})

for (const point of PERSONAS_POINTS)
  t.test(`after a kill at ${point} of its removal, a persona and its kit both exist, or neither`, async t => {
    const folder = folderOf(t)
    const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
    makeWorkspace(where.workspace)
    await dies(t, where, point, async daemon => {
      await daemon.client.call('POST /personas', ONE)
      await daemon.client.call('POST /personas/{id}/prompt', { id: 'a', prompt: 'kept' })
      await daemon.once.call('DELETE /personas/{id}', { id: 'a' })
    })
    const next = await spawnDaemon(t, where)
    const { personas } = await next.client.call('GET /personas')
    const kits = join(where.workspace, '.sandbox/config/personas')
    t.same(readdirSync(kits), personas.length > 0 ? ['a'] : [])
    t.equal(existsSync(join(kits, 'a/PROMPT.md')), personas.length > 0)
    t.equal(personas.length, point === 'personas.kit.parked' ? 1 : 0)
    await next.terminate()
  })
