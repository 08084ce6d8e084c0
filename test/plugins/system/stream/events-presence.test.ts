import t from 'tap'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { openEvents, say } from './events-support.js'

t.test('a person is on the roster while the stream is open, and reports their view', async t => {
  const daemon = await daemonWith(t, ['system'])
  const watching = await openEvents(t, daemon)
  await watching.kinds(4)
  const here = await openEvents(t, daemon, '?clientId=laptop')
  const ada = { clientId: 'laptop', email: 'owner@sandbox.local', role: 'owner', idle: false }
  t.strictSame((await here.until('presence')).users, [ada], 'in its own first snapshot')
  t.strictSame((await watching.until('presence')).users, [ada])
  t.same(
    await (
      await say(daemon, { clientId: 'laptop', idle: true, view: 'board', sessionId: 'c1', path: 'src/a.ts' })
    ).json(),
    { ok: true },
  )
  t.strictSame((await watching.until('presence')).users, [
    { ...ada, idle: true, view: 'board', sessionId: 'c1', path: 'src/a.ts' },
  ])
  await say(daemon, { clientId: 'laptop', idle: false })
  t.strictSame((await watching.until('presence')).users, [ada], 'omitted fields are cleared')
  await here.close()
  t.strictSame((await watching.until('presence')).users, [])
})

t.test('a report for an unknown client changes nothing', async t => {
  const daemon = await daemonWith(t, ['system'])
  const here = await openEvents(t, daemon, '?clientId=laptop')
  await here.kinds(4)
  const { head } = daemon.kernel.live
  t.equal((await say(daemon, { clientId: 'phone', idle: true })).status, 200)
  t.equal((await say(daemon, { clientId: 'laptop', idle: false })).status, 200)
  t.equal(daemon.kernel.live.head, head)
})

t.test('a client that reconnects before its old stream ends stays on the roster', async t => {
  const daemon = await daemonWith(t, ['system'])
  const watching = await openEvents(t, daemon)
  await watching.kinds(4)
  const [old, fresh] = [
    await openEvents(t, daemon, '?clientId=laptop'),
    await openEvents(t, daemon, '?clientId=laptop'),
  ]
  await fresh.until('presence', ({ users }) => users.length === 1)
  await old.close()
  await say(daemon, { clientId: 'laptop', idle: true })
  t.match(await watching.until('presence'), { users: exactly({ idle: false }) })
  t.match(await watching.until('presence'), { users: exactly({ idle: true }) })
  await fresh.close()
  t.match(await watching.until('presence'), { users: { length: 0 } })
})
