import t from 'tap'
import { add } from '../../plugins/capabilities/support.js'
import { spawnDaemon } from '../../support/daemon.js'
import { framesOf } from '../../support/turns.js'
import { whereIn } from '../failpoints/failpoints.js'

t.test('a daemon that is killed while the person fills in the form waits on for the connection', async t => {
  const where = whereIn(t)
  const daemon = await spawnDaemon(t, where)
  await daemon.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'c',
    prompt: 'connect github To push.\nsay $out',
  })
  const { requestId } = await framesOf(daemon.client, 'c', { run }).until(frame => frame.kind === 'capability_offer')
  await daemon.client.call('POST /agent/reply', { kind: 'capability_offer', requestId, connect: true })
  await daemon.kill9()
  const next = await spawnDaemon(t, where)
  const watched = framesOf(next.client, 'c', { run })
  await add(next, { id: 'mine', kind: 'cli', config: { provider: 'github', token: 'ghp-value-of-it' } })
  const frames = (await watched.all()).map(({ event }) => event)
  const prose = frames.map(frame => (frame.kind === 'delta' ? frame.text : '')).join('')
  t.match(prose, /^GitHub is connected as mine/)
  t.equal(frames.filter(({ kind }) => kind === 'capability_offer').length, 1, 'it is offered once')
})
