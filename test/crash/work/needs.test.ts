import t from 'tap'
import { spawnDaemon } from '../../support/daemon.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { dies, NEEDS_POINTS, whereIn } from '../failpoints/failpoints.js'

for (const point of NEEDS_POINTS)
  void t.test(`a conversation goes on exactly once if the daemon is killed at ${point}`, async t => {
    const where = whereIn(t)
    await dies(t, where, point, async ({ once: client }) => {
      await runTurn(client, 'asks', 'need information Which region?\nsay waiting')
      const { needs } = await client.call('GET /needs', {})
      await client.call('POST /needs/{id}/give', { id: needs[0]!.id, answers: { answer: 'eu-west-1' } })
    })
    const { client } = await spawnDaemon(t, where)
    const [need] = (await client.call('GET /needs', { status: 'given,open' })).needs
    const { run } = await client.call('POST /needs/{id}/give', { id: need!.id, answers: { answer: 'eu-west-1' } })
    const settled = async () => (await client.call('GET /needs/{id}', { id: need!.id })).continued
    let continued = run
    while ((continued ??= await settled()) === undefined) await new Promise(resolve => setTimeout(resolve, 20))
    await framesOf(client, 'asks', { run: continued }).all()
    const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'asks' })
    const told = messages.filter(message => message.role === 'user' && message.text.includes('eu-west-1'))
    t.equal(told.length, 1)
  })
