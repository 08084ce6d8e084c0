import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import { hookServer, itemIn } from '../../plugins/approvals/support.js'
import { spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { APPROVALS_POINTS, dies, whereIn } from '../failpoints/failpoints.js'

const hooked = async (t: Test) => ({ hook: await hookServer(t), where: whereIn(t) })

/** Proposes a post to a server that may be called. */
const post = async (client: Client, target: string) => {
  await client.call('POST /settings/patch', {
    set: { networkAllow: [new URL(target).host.replace('127.0.0.1', 'localhost')] },
  })
  return client.call('POST /approvals', {
    id: 'news',
    kind: 'post',
    post: { platform: 'webhook', target, content: 'News' },
  })
}

const AFTER: { readonly [point: string]: readonly ['done' | 'failed', requests: number] } = {
  'approvals.approved': ['done', 1],
  'approvals.sending': ['failed', 0],
  'approvals.answered': ['failed', 1],
  'approvals.ended': ['done', 1],
}

for (const point of APPROVALS_POINTS)
  void t.test(`a post is sent at most once if the daemon is killed at ${point}`, async t => {
    const { hook, where } = await hooked(t)
    await dies(t, where, point, async ({ once: client }) => {
      const { id, digest } = await post(client, hook.url)
      await client.call('POST /approvals/{id}/approve', { id, digest, now: true })
    })
    const { client } = await spawnDaemon(t, where)
    const [status, requests] = AFTER[point]!
    const item = await itemIn(client, 'news', 'done', 'failed')
    t.match(item, { status, attempts: exactly({ outcome: status === 'done' ? 'done' : 'unknown' }) })
    t.equal(hook.received.length, requests)
  })

void t.test('a request that was not answered when the daemon was killed is not sent again', async t => {
  const { hook, where } = await hooked(t)
  hook.state.answer = undefined
  const daemon = await spawnDaemon(t, where)
  const { id, digest } = await post(daemon.once, hook.url)
  await daemon.once.call('POST /approvals/{id}/approve', { id, digest, now: true })
  while (hook.received.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
  await daemon.kill9()
  hook.state.answer = { status: 200 }
  const { client } = await spawnDaemon(t, where)
  const item = await itemIn(client, id, 'failed')
  t.match(item.attempts, exactly({ outcome: 'unknown', error: /may have gone out: look before you try again/ }))
  t.equal(hook.received.length, 1)
  await client.call('POST /approvals/{id}/approve', { id, digest, now: true })
  await itemIn(client, id, 'done')
  const [first, second, ...more] = hook.received.map(({ headers }) => headers['idempotency-key'])
  t.same([first, second, more], ['news-1', 'news-2', []])
})

void t.test('what is due while the daemon is stopped is sent once after its start', async t => {
  const { hook, where } = await hooked(t)
  const daemon = await spawnDaemon(t, where)
  const { id, digest } = await post(daemon.once, hook.url)
  await daemon.once.call('POST /approvals/{id}/approve', { id, digest, scheduledAt: Date.now() + 3_000 })
  await daemon.terminate()
  t.equal(hook.received.length, 0)
  const { client } = await spawnDaemon(t, where)
  t.match(await itemIn(client, id, 'done'), { attempts: exactly({ outcome: 'done' }) })
  t.equal(hook.received.length, 1)
})
