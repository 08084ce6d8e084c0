import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Rule } from '../../../plugins/settings/contract.js'
import type { Client } from '../../../sdk/client.js'
import { until } from '../../support/browser/browser.js'
import { endTerminals, spawnDaemon } from '../../support/daemon.js'
import { beginning } from '../../support/lists.js'
import { TestForge, TOKEN } from '../../plugins/pipelines/forge-server.js'
import { repoOf, reportTo } from '../../plugins/pipelines/support.js'
import { dies, whereIn } from '../failpoints/failpoints.js'

const check = (client: Client, command: string) => {
  const action = { kind: 'command', command } as const
  const rule: Rule = { id: 'check', label: 'Check', moment: 'push.starting', action }
  return client.call('POST /settings/patch', { set: { rules: [rule] } })
}

/** Whether a process with these words in its command runs. */
const runs = (words: string): boolean =>
  readdirSync('/proc').some(pid => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(words)
    } catch {
      return false
    }
  })

// Each daemon is killed at a step of its own, and the next one is asked what became of that.
t.test('a daemon that is killed at a step of pipelines loses nothing and delivers nothing twice', async t => {
  const where = whereIn(t)
  t.teardown(() => endTerminals(where.data))
  const forge = await new TestForge('gitea', '127.0.0.1').listen(t, true)
  const run = forge.add('running')
  const newest = async (client: Client) => (await client.call('GET /ci/runs', { host: 'local' })).runs[0]!
  const fix = async (client: Client) =>
    client.call('POST /ci/fix', { repo: 'root', runId: (await newest(client)).runId })
  const secretOf = async (client: Client) => (await client.call('GET /ci/webhook/{host}', { host: 'gitea' })).secret
  const fired = async (client: Client) => (await client.call('GET /automations/{id}', { id: 'look' })).runs.length

  await dies(t, where, 'pipelines.check.began', async ({ once }) => {
    await check(once, 'sleep 654987')
    await once.call('POST /prepush/run')
  })

  await dies(t, where, 'pipelines.fix.noted', async ({ once }) => {
    t.match(await once.call('GET /prepush/state'), { status: 'cancelled' })
    t.match((await once.call('GET /ci/runs', {})).runs, beginning({ host: 'local', status: 'canceled', number: 1 }))
    await until(() => !runs('654987'))
    await check(once, 'exit 1')
    await once.call('POST /prepush/run')
    await until(async () => (await once.call('GET /prepush/state')).status === 'failed')
    await fix(once)
  })

  await dies(t, where, 'pipelines.event.delivered', async ({ once, url }) => {
    await until(async () => (await newest(once)).fix === undefined)
    const { conversationId } = await fix(once)
    t.same(
      (await once.call('GET /agents')).agents.map(({ id }) => id),
      [conversationId],
    )
    repoOf(where.workspace, forge)
    await once.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    const config = { ...forge.config, provider: 'gitea', token: TOKEN }
    for await (const step of await once.call('POST /capabilities', { id: 'forge', kind: 'cli', config })) void step
    const trigger = { kind: 'listener', provider: 'ci', eventType: 'pipeline_failed' } as const
    await once.call('POST /automations', { id: 'look', prompt: 'say done', enabled: true, trigger })
    await once.call('GET /ci/runs', { fresh: true })
    run.status = 'failed'
    run.updatedAt += 60_000
    await reportTo({ url }, forge, run, await secretOf(once))
  })

  const { client, url } = await spawnDaemon(t, where)
  await until(async () => (await fired(client)) > 0)
  const secret = await secretOf(client)
  t.match(await reportTo({ url }, forge, run, secret), { status: 200, ignored: true })
  t.match(await reportTo({ url }, forge, forge.add('failed'), secret), { status: 200 })
  await until(async () => (await fired(client)) > 1)
  t.equal(await fired(client), 2, 'the first run fired it once')
  const delivery = async () => (await client.call('GET /ci/runs', { host: 'gitea', limit: 1 })).repos[0]?.delivery
  while ((await delivery()) !== 'poll') await sleep(500)
})
