import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Client } from '../../sdk/client.js'
import { spawnDaemon } from '../support/daemon.js'
import { dies, whereIn, WORKSPACE_POINTS } from './failpoints.js'

const FILES = { 'docs/a.md': 'a', 'docs/deep/b.md': 'b' }

/** What is asked until the daemon dies. */
const asks = async (client: Client): Promise<void> => {
  await client.call('POST /workspace/copy', { from: 'docs', to: 'copy' })
  const { trashId } = await client.call('DELETE /workspace/entry', { path: 'docs' })
  await client.call('POST /workspace/restore', { id: trashId!, to: 'back' })
}

t.jobs = 2
for (const point of WORKSPACE_POINTS) {
  void t.test(`killed at ${point}, every file is in one place and nothing is left over`, async t => {
    const where = whereIn(t, FILES)
    await dies(t, where, point, ({ once }) => asks(once))
    const { client, terminate } = await spawnDaemon(t, where)
    const { items } = await client.call('GET /workspace/trash', {})
    const places = ['docs', 'back'].filter(path => existsSync(join(where.workspace, path)))
    t.equal(places.length + items.length, 1, `${places.join()} ${items.map(({ path }) => path).join()}`)
    if (items[0]) await client.call('POST /workspace/restore', { id: items[0].id })
    t.equal(readFileSync(join(where.workspace, places[0] ?? 'docs', 'deep/b.md'), 'utf8'), 'b')
    const trash = join(where.workspace, '.sandbox/local/trash')
    t.same(existsSync(trash) ? readdirSync(trash) : [], [])
    await client.call('GET /workspace/tree', {})
    t.notOk(
      readdirSync(where.workspace).some(name => name.startsWith('.sandbox-write-')),
      'no temporary name is left',
    )
    await terminate()
  })
}
