import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import t from 'tap'
import { add } from '../plugins/capabilities/support.js'
import { host } from '../plugins/inventory/support.js'
import { inGit, spawnDaemon } from '../support/daemon.js'
import { spread } from '../support/lists.js'
import { dies, whereIn } from './failpoints/failpoints.js'

t.test('killed between the file and its commit, the file is whole and shown as edited', async t => {
  const where = whereIn(t)
  const first = await spawnDaemon(t, where)
  await first.client.call('POST /workspace/repos/init', { path: 'intent' })
  await first.client.call('POST /inventory', host('cellar'))
  await first.kill9()
  await dies(t, where, 'git.file.written', ({ once: client }) => client.call('POST /inventory', host('attic')))
  const { client } = await spawnDaemon(t, where)
  const list = await client.call('GET /inventory')
  t.match(list, { ready: true, dirty: true })
  t.same(
    list.entries.map(({ name }) => name),
    ['cellar', 'attic'],
  )
  await t.rejects(client.call('POST /inventory', host('roof')), { message: /has uncommitted edits/ })
  inGit(join(where.workspace, 'intent'), 'commit', '-q', '-a', '-m', 'By hand')
  t.equal((await client.call('POST /inventory', host('roof'))).dirty, false)
})

t.test('killed at any moment of many additions, what was acknowledged is there and the file is valid', async t => {
  const where = whereIn(t)
  const file = join(where.workspace, 'intent/deploy.config.json')
  let daemon = await spawnDaemon(t, where)
  await daemon.client.call('POST /workspace/repos/init', { path: 'intent' })
  const acknowledged: string[] = []
  for (const [round, ms] of spread([40, 90, 150, 230, 310, 420], 3).entries()) {
    const { once: client } = daemon
    const adding = (async () => {
      for (let at = 0; ; at++) {
        const name = `h${round}_${at}`
        await client.call('POST /inventory', host(name))
        acknowledged.push(name)
      }
    })().catch(error => error)
    await sleep(ms)
    await daemon.kill9()
    await adding
    daemon = await spawnDaemon(t, where)
    const { dirty, entries } = await daemon.client.call('GET /inventory')
    t.same(
      acknowledged.filter(name => !entries.some(entry => entry.name === name)),
      [],
    )
    if (acknowledged.length > 0) JSON.parse(readFileSync(file, 'utf8'))
    if (!dirty) continue
    inGit(join(where.workspace, 'intent'), 'add', '-A')
    inGit(join(where.workspace, 'intent'), 'commit', '-q', '-m', 'By hand')
  }
})

for (const [point, kind, repositories] of [
  ['inventory.repository.made', 'devops', ['intent', 'desired-state']],
  ['inventory.monorepo.written', 'monorepo', ['house']],
] as const)
  t.test(`killed at ${point}, connecting it again makes what is missing`, async t => {
    const where = whereIn(t)
    const given = { id: kind === 'devops' ? 'devops' : 'house', kind, config: {} } as const
    await dies(t, where, point, ({ once: client }) => add({ client }, given))
    const { client } = await spawnDaemon(t, where)
    t.same((await client.call('GET /capabilities')).capabilities, [], 'nothing is recorded')
    t.match((await add({ client }, given)).at(-1), { kind: 'result', status: { state: 'active' } })
    for (const name of repositories) {
      t.equal(inGit(join(where.workspace, name), 'rev-list', '--count', 'HEAD').trim(), '1')
      t.equal(inGit(join(where.workspace, name), 'status', '--porcelain'), '')
    }
  })
