import t from 'tap'
import { spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { envelope, failure, issuesOf, newReporter, send } from '../../plugins/issues/support.js'
import { dies, whereIn } from '../failpoints/failpoints.js'

const EVENTS = 60

/** Reports events of three faults all at once, and returns those that were acknowledged. */
const reported = async (
  daemon: Pick<RunningDaemon, 'url'>,
  reporter: { id: number; key: string },
  events: readonly object[],
): Promise<object[]> => {
  const done: object[] = []
  const one = async (event: object) => {
    const answer = await send(daemon, reporter, envelope([['event', event]])).catch(() => undefined)
    if (answer?.status === 200) done.push(event)
  }
  await Promise.all(events.map(one))
  return done
}

for (const point of ['issues.logged:3', 'issues.kept:2', 'issues.stored'])
  void t.test(`each acknowledged event is counted once if the daemon is killed at ${point}`, async t => {
    const where = whereIn(t)
    const events = Array.from({ length: EVENTS }, (_, at) => failure(`Error${at % 3}`))
    let reporter: { id: number; key: string } | undefined
    let acknowledged: object[] = []
    await dies(t, where, point, async daemon => {
      reporter = await newReporter(daemon.once)
      for (let at = 0; at < EVENTS; at += 20)
        acknowledged = [...acknowledged, ...(await reported(daemon, reporter, events.slice(at, at + 20)))]
    })
    const daemon = await spawnDaemon(t, where)
    const count = async () => (await issuesOf(daemon.client, reporter!)).reduce((sum, issue) => sum + issue.count, 0)
    t.ok((await count()) >= acknowledged.length, 'what was acknowledged is there')
    t.equal((await reported(daemon, reporter!, events)).length, EVENTS)
    t.equal(await count(), EVENTS, 'and was not counted again')
    for (const { id, count: all } of await issuesOf(daemon.client, reporter!)) {
      const { events: kept } = await daemon.client.call('GET /issues/{id}', { id, limit: 50 })
      t.equal(kept.length, all, 'its events are kept once')
    }
  })

void t.test('an issue whose agent did not start has none after the daemon is killed at issues.fix.noted', async t => {
  const where = whereIn(t)
  await dies(t, where, 'issues.fix.noted', async daemon => {
    const reporter = await newReporter(daemon.once)
    await send(daemon, reporter, envelope([['event', failure('Error')]]))
    const [issue] = await issuesOf(daemon.once, reporter)
    await daemon.once.call('POST /issues/{id}/fix', { id: issue!.id })
  })
  const { client } = await spawnDaemon(t, where)
  const fixOf = async () => (await issuesOf(client, { id: 1 })).map(({ fix }) => fix)
  while ((await fixOf())[0] !== undefined) await new Promise(resolve => setTimeout(resolve, 20))
  const [issue] = await issuesOf(client, { id: 1 })
  const { conversationId } = await client.call('POST /issues/{id}/fix', { id: issue!.id })
  t.same(
    (await client.call('GET /agents')).agents.map(({ id }) => id),
    [conversationId],
  )
})
