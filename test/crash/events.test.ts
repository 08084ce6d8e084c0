import { join } from 'node:path'
import t from 'tap'
import { openEvents } from '../plugins/system/stream/events-support.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { framesOf } from '../support/turns.js'

t.test('after a kill the stream restarts in another epoch, and contains the earlier events', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const first = await spawnDaemon(t, where)
  const before = await openEvents(t, first, '?roster=delta&clientId=ada')
  t.equal((await before.until('hello')).resumed, false)
  t.match(await before.until('presence'), { users: exactly({ clientId: 'ada' }) })
  const { run } = await first.client.call('POST /agent', {
    conversationId: 'c',
    isolated: true,
    prompt: 'write a.txt\n| a\nask Go on?\n| yes',
  })
  await before.until('agent', ({ agent }) => agent?.status === 'awaiting')
  const cut = before.end()
  await first.kill9()
  t.equal(await cut.catch(() => undefined), undefined, 'an interrupted stream has no end event')

  const second = await spawnDaemon(t, where)
  // The answer comes once the start is complete.
  await second.client.call('GET /agents')
  for (const from of [before.last, `${before.last.split('-')[0]}-1`]) {
    const after = await openEvents(t, second, '?roster=delta', { 'last-event-id': from })
    const hello = await after.until('hello')
    t.equal(hello.resumed, false)
    t.not(hello.epoch, before.last.split('-')[0])
    t.match(await after.until('agents'), {
      agents: exactly({ id: 'c', status: 'awaiting', run, cards: exactly({ kind: 'question' }) }),
    })
    t.same((await after.until('presence')).users, [], 'the roster is empty')
    t.match(await after.until('attention'), { cards: 1 })
    await after.close()
  }
  const { cards } = await second.client.call('GET /agents/{id}', { id: 'c' })
  await second.client.call('POST /agent/reply', { kind: 'question', requestId: cards![0]!.requestId, answers: {} })
  t.match((await framesOf(second.client, 'c').all()).at(-1)?.event, { kind: 'done', reason: 'completed' })
  await second.terminate()
})
