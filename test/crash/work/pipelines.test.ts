import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import type { Rule } from '../../../plugins/settings/contract.js'
import { until } from '../../support/browser/browser.js'
import { endTerminals, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { TestForge, TOKEN } from '../../plugins/pipelines/forge-server.js'
import { repoOf, reportTo } from '../../plugins/pipelines/support.js'
import { dies, whereIn } from '../failpoints/failpoints.js'

const check = (command: string): Rule => ({
  ...{ id: 'check', label: 'Check', moment: 'push.starting', action: { kind: 'command', command } },
})
const save = ({ client }: Pick<RunningDaemon, 'client'>, rule: Rule) =>
  client.call('POST /settings/patch', { set: { rules: [rule] } })
const once = ({ once: client }: Pick<RunningDaemon, 'once'>) => ({ client })

/** Whether a process with these words in its command runs. */
const runs = (words: string): boolean =>
  readdirSync('/proc').some(pid => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(words)
    } catch {
      return false
    }
  })

void t.test(
  'a check whose daemon is killed at pipelines.check.began was cancelled, and nothing of it runs',
  async t => {
    const where = whereIn(t)
    t.teardown(() => endTerminals(where.data))
    await dies(t, where, 'pipelines.check.began', async daemon => {
      await save(once(daemon), check('sleep 654987'))
      await daemon.once.call('POST /prepush/run')
    })
    const { client } = await spawnDaemon(t, where)
    t.match(await client.call('GET /prepush/state'), { status: 'cancelled' })
    t.match((await client.call('GET /ci/runs', {})).runs, exactly({ host: 'local', status: 'canceled', number: 1 }))
    await until(() => !runs('654987'))
    await save({ client }, check('true'))
    await client.call('POST /prepush/run')
    await until(async () => (await client.call('GET /prepush/state')).status === 'passed')
  },
)

void t.test('a run whose agent did not start has none after the daemon is killed at pipelines.fix.noted', async t => {
  const where = whereIn(t)
  t.teardown(() => endTerminals(where.data))
  const fix = async ({ client }: Pick<RunningDaemon, 'client'>) => {
    const [run] = (await client.call('GET /ci/runs', {})).runs
    return client.call('POST /ci/fix', { repo: 'root', runId: run!.runId })
  }
  await dies(t, where, 'pipelines.fix.noted', async daemon => {
    const { client } = once(daemon)
    await save({ client }, check('exit 1'))
    await client.call('POST /prepush/run')
    await until(async () => (await client.call('GET /prepush/state')).status === 'failed')
    await fix({ client })
  })
  const { client } = await spawnDaemon(t, where)
  await until(async () => (await client.call('GET /ci/runs', {})).runs[0]?.fix === undefined)
  const { conversationId } = await fix({ client })
  t.same(
    (await client.call('GET /agents')).agents.map(({ id }) => id),
    [conversationId],
  )
})

void t.test('automations are told once of a run that was reported before pipelines.event.told', async t => {
  const where = whereIn(t)
  const forge = await new TestForge('gitea', '127.0.0.1').listen(t, true)
  const run = forge.add('running')
  const fired = async ({ client }: Pick<RunningDaemon, 'client'>) =>
    (await client.call('GET /automations/{id}', { id: 'look' })).runs.length
  const trigger = { kind: 'listener', provider: 'ci', eventType: 'pipeline_failed' } as const
  await dies(t, where, 'pipelines.event.told', async daemon => {
    const { client } = once(daemon)
    repoOf(where.workspace, forge)
    await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    const config = { ...forge.config, provider: 'gitea', token: TOKEN }
    for await (const step of await client.call('POST /capabilities', { id: 'forge', kind: 'cli', config })) void step
    await client.call('POST /automations', { id: 'look', prompt: 'say done', enabled: true, trigger })
    await client.call('GET /ci/runs', { fresh: true })
    const { secret } = await client.call('GET /ci/webhook/{host}', { host: 'gitea' })
    run.status = 'failed'
    run.updatedAt += 60_000
    await reportTo(daemon, forge, run, secret)
  })
  const daemon = await spawnDaemon(t, where)
  await until(async () => (await fired(daemon)) > 0)
  const { secret } = await daemon.client.call('GET /ci/webhook/{host}', { host: 'gitea' })
  t.match(await reportTo(daemon, forge, run, secret), { status: 200, ignored: true })
  const next = forge.add('failed')
  t.match(await reportTo(daemon, forge, next, secret), { status: 200 })
  await until(async () => (await fired(daemon)) > 1)
  t.equal(await fired(daemon), 2, 'the first run fired it once')
})
