import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { joined } from '../support/joined.js'

const ONE = { label: 'one', folders: ['docs', 'src'], access: 'work' as const, note: 'one' }
const OTHER = { label: 'other', folders: ['look'], access: 'read' as const, note: 'other' }

t.test(
  'after a kill between writes of two owners, the area and its people are entirely those of one of them',
  async t => {
    const folder = folderOf(t)
    const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
    makeWorkspace(where.workspace, { 'docs/a': 'a', 'src/b': 'b', 'look/c': 'c' })
    const first = await spawnDaemon(t, where)
    await first.client.call('POST /areas', { id: 'a', ...ONE })
    await first.client.call('POST /areas', { id: 'b', label: 'b', folders: ['docs'] })
    const people = [await joined(first, 'ann', 'collaborator', ['b']), await joined(first, 'bob', 'viewer', ['b'])].map(
      ({ email }) => email,
    )
    await first.terminate()
    for (const writes of [1, 2, 5, 9]) {
      const daemon = await spawnDaemon(t, where)
      let [done, given] = [0, 0]
      const enough = Promise.withResolvers<void>()
      const count = () => {
        if (++done >= writes) enough.resolve()
      }
      const writer = async (area: typeof ONE | typeof OTHER) => {
        for (;;) {
          await daemon.once.call('POST /areas', { id: 'a', ...area })
          count()
        }
      }
      const giver = async () => {
        for (;;)
          await daemon.once.call('POST /areas/{id}/holders', {
            id: 'a',
            ...(given++ % 2 ? { remove: people } : { add: people }),
          })
      }
      const all = [writer(ONE), writer(OTHER), giver()].map(work => work.catch(() => {}))
      await enough.promise
      await daemon.kill9()
      await Promise.all(all)

      const next = await spawnDaemon(t, where)
      const { areas } = await next.client.call('GET /areas')
      const { label, folders, access, note, holders } = areas.find(({ id }) => id === 'a')!
      t.ok(
        [ONE, OTHER].some(area => JSON.stringify(area) === JSON.stringify({ label, folders, access, note })),
        `after ${writes}: ${label}`,
      )
      t.ok(holders!.length === 0 || holders!.length === 2, 'both people have it, or neither')
      await next.terminate()
    }
  },
)
