import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { WebhookFired } from '../../../plugins/automations/contract.js'
import { automation, settled, until } from '../../support/automations.js'
import { exactly } from '../../support/lists.js'
import { spawnDaemon } from '../../support/daemon.js'
import { framesOf } from '../../support/turns.js'
import { dies, whereIn, type Where } from '../failpoints/failpoints.js'

const HOOK = { kind: 'event' } as const

/** Daemons one after the other: the second one after the first was killed at the point. */
const killed = async (t: Test, point: string, id: string, more: Partial<Parameters<typeof automation>[1]>) => {
  const where = whereIn(t)
  let hook = { url: '', token: '' }
  const call = async (base: string): Promise<WebhookFired> => {
    const { pathname } = new URL(hook.url)
    const url = new URL(`${pathname}?token=${hook.token}`, base)
    const headers = { 'idempotency-key': 'the one' }
    const response = await fetch(url, { method: 'POST', body: 'the payload', headers })
    return (await response.json()) as WebhookFired
  }
  const guard = 'echo "$AUTOMATION_PAYLOAD" >> guards'
  await dies(t, where, point, async ({ once: client, url, process }) => {
    const died = once(process, 'exit')
    await client.call('POST /automations', automation(id, { guard, ...more, trigger: HOOK }))
    hook = await client.call('GET /automations/{id}/token', { id })
    await call(url).catch(() => {})
    await died
  })
  const daemon = await spawnDaemon(t, where)
  return { daemon, where, again: () => call(daemon.url) }
}

const lines = ({ workspace }: Where, file: string): string[] => {
  const path = join(workspace, file)
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
}

for (const [point, guards, cause] of [
  ['automations.fire.checking', 1, 'restart'],
  ['automations.fire.journaled', 2, 'restart'],
] as const) {
  void t.test(`a fire whose daemon is killed at ${point} fires again once, and its key starts nothing`, async t => {
    const { daemon, where, again } = await killed(t, point, 'hook', { prompt: 'run echo ran >> runs\nsay done' })
    const { runs } = await settled(daemon, 'hook', 1)
    t.match(runs, exactly({ outcome: 'completed', cause }))
    t.match(await again(), { ok: true, run: runs[0]!.run! })
    t.same(lines(where, 'guards'), Array(guards).fill('the payload'))
    t.equal((await daemon.client.call('GET /automations/{id}', { id: 'hook' })).runs.length, 1)
    const { agents } = await daemon.client.call('GET /agents')
    t.equal(agents.length, 1)
  })
}

t.test('a fire whose daemon is killed when its turn was accepted goes on, and is never repeated', async t => {
  const point = 'automations.fire.started'
  const { daemon, where, again } = await killed(t, point, 'hook', { prompt: 'wait 100\nsay done' })
  const { runs } = await settled(daemon, 'hook', 1)
  t.match(runs, exactly({ outcome: 'completed', cause: 'webhook' }))
  t.match(await again(), { ok: true, run: runs[0]!.run! })
  t.same(lines(where, 'guards'), ['the payload'])
  t.equal((await daemon.client.call('GET /automations/{id}', { id: 'hook' })).runs.length, 1)
})

t.test('a fire whose daemon is killed in the middle of its turn is recorded as interrupted', async t => {
  const where = whereIn(t)
  writeFileSync(join(where.workspace, '.sandbox/config/settings.json'), '{}')
  const first = await spawnDaemon(t, where)
  const trigger = { kind: 'schedule', cron: '0 0 1 1 *' } as const
  await first.client.call('POST /automations', automation('long', { trigger, prompt: 'say begun\nwait 20000' }))
  const { conversationId, run } = await first.client.call('POST /automations/{id}/run', { id: 'long' })
  await framesOf(first.once, conversationId!, { run: run! }).until(({ kind }) => kind === 'delta')
  await first.kill9()
  const second = await spawnDaemon(t, where)
  t.match((await settled(second, 'long', 1)).runs, exactly({ outcome: 'interrupted', run: run!, cause: 'hand' }))
})

t.test('a fire whose daemon is killed after its record has one record', async t => {
  const { daemon } = await killed(t, 'automations.fire.recorded', 'hook', { prompt: 'say done' })
  const { runs } = await until(daemon, 'hook', ({ running }) => !running)
  t.match(runs, exactly({ outcome: 'completed' }))
})

t.test('a held wake outlives a kill, and approving it runs what was held', async t => {
  const { daemon, again } = await killed(t, 'automations.wake.held', 'hook', {
    prompt: 'say done',
    requireApproval: true,
  })
  const { approvals } = await daemon.client.call('GET /automations/pending')
  t.match(approvals, exactly({ automationId: 'hook', payload: 'the payload' }))
  t.match(await again(), { ok: true, held: approvals[0]!.id })
  await daemon.client.call('POST /automations/pending/{id}/approve', { id: approvals[0]!.id })
  t.match((await settled(daemon, 'hook', 1)).runs, exactly({ outcome: 'completed', cause: 'approved' }))
})

t.test('a time that was claimed before a kill fires once', async t => {
  const where = whereIn(t)
  const trigger = { kind: 'schedule', cron: '* * * * * *' } as const
  const guard = 'echo guard >> guards'
  await dies(t, where, 'automations.slot.claimed', async ({ once: client, process }) => {
    const died = once(process, 'exit')
    await client.call('POST /automations', automation('ticks', { trigger, guard }))
    await died
  })
  t.same(lines(where, 'guards'), [])
  const { client } = await spawnDaemon(t, where)
  await settled({ client }, 'ticks', 2)
  await client.call('POST /automations/{id}/enabled', { id: 'ticks', enabled: false })
  const { runs } = await until({ client }, 'ticks', ({ running }) => !running)
  const conversations = runs.map(({ conversationId }) => conversationId)
  t.equal(new Set(conversations).size, runs.length, 'each time has its own conversation')
  t.equal(lines(where, 'guards').length, runs.length, 'each guard ran once')
})
