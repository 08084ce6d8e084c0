import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { host } from '../../plugins/inventory/support.js'
import { endTerminals, spawnDaemon } from '../../support/daemon.js'
import { sshKey } from '../../support/ssh-server.js'
import { dies, whereIn } from '../failpoints/failpoints.js'

t.test('killed before the job of an apply began, it is interrupted, and the next one starts', async t => {
  const where = whereIn(t)
  t.teardown(() => endTerminals(where.data))
  const first = await spawnDaemon(t, where)
  for (const path of ['intent', 'desired-state']) await first.client.call('POST /workspace/repos/init', { path })
  mkdirSync(join(where.workspace, 'shop'))
  writeFileSync(join(where.workspace, 'shop/Containerfile'), 'FROM scratch\n')
  const app = { kind: 'app', name: 'shop', values: { source: 'shop' }, on: 'cellar', expose: '' } as const
  // Nobody listens there, so the job ends at once.
  await first.client.call('POST /inventory', host('cellar', '127.0.0.1'))
  await first.client.call('POST /inventory', app)
  await first.client.call('POST /secrets', {
    key: 'HOST_SSH_KEY_CELLAR',
    value: sshKey(join(where.data, '..'), 'key').private,
  })
  await first.kill9()
  await dies(t, where, 'cli.apply.kept', ({ once: client }) => client.call('POST /cli/apply', {}))
  const { client } = await spawnDaemon(t, where)
  t.match((await client.call('GET /cli')).apply, { state: 'interrupted' })
  await client.call('POST /cli/apply', {})
  const state = async () => (await client.call('GET /cli')).apply
  for (const end = Date.now() + 30_000; (await state()).state === 'running' && Date.now() < end;) await delay(50)
  t.match(await state(), { state: 'failed', command: 'apply', code: 1 })
})
