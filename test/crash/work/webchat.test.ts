import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../support/automations.js'
import { spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { answersIn, chat, isAnswer, SITE, TestVisitor } from '../../support/webchat.js'
import { dies, whereIn } from '../failpoints/failpoints.js'

for (const [how, settings, outcomes] of [
  ['whose turn goes on', '{"autoResumeOnRestart":true}', ['completed']],
  ['whose turn is asked for again', '{}', ['completed', 'interrupted']],
] as const) {
  void t.test(`a kill in the middle of an answer, ${how}: the visitor reads it once, by the same token`, async t => {
    const where = whereIn(t)
    writeFileSync(join(where.workspace, '.sandbox/config/settings.json'), settings)
    const first = await spawnDaemon(t, where)
    const prompt = 'say begun\nwait 1500\nsay ended'
    await first.client.call('POST /automations', chat('shop', { prompt, webchat: { antiBot: 'off' } }))
    const eve = new TestVisitor(first, 'shop')
    await eve.read(await eve.post({ content: 'Hello' }), ({ kind }) => kind === 'delta')
    await first.kill9()
    const second = await spawnDaemon(t, where)
    const again = new TestVisitor(second, 'shop', SITE, eve.thread)
    again.visitor = eve.visitor
    t.match(answersIn(await again.follow(0, isAnswer)), exactly(/^begun\s+ended$/))
    const { runs } = await until(second, 'shop', row => !row.running && row.runs.length === outcomes.length)
    t.same(
      runs.map(({ outcome }) => outcome),
      outcomes,
    )
    t.same(answersIn(await again.say('And now?')).length, 1)
    const whole = await again.follow(0, ({ seq }) => seq === 4)
    t.match(
      whole.map(({ kind, seq }) => `${kind} ${seq}`),
      exactly('message 1', 'message 2', 'message 3', 'message 4'),
    )
  })
}

t.test('a message that was kept before a kill, and not asked yet, is answered once', async t => {
  const where = whereIn(t)
  const eve: { thread?: string; visitor?: string } = {}
  await dies(t, where, 'automations.visit.kept', async ({ once: client, url, process }) => {
    const died = once(process, 'exit')
    await client.call('POST /automations', chat('shop', { prompt: 'say hello', webchat: { antiBot: 'pow' } }))
    const visitor = new TestVisitor({ url }, 'shop')
    await visitor.say('Hello', { messageId: 'one' }).catch(() => {})
    eve.thread = visitor.thread
    await died
  })
  const daemon = await spawnDaemon(t, where)
  const { runs } = await until(daemon, 'shop', row => !row.running && row.runs.length >= 1)
  t.match(runs, exactly({ outcome: 'completed' }))
  const lost = new TestVisitor(daemon, 'shop', SITE, eve.thread)
  t.equal(
    (await lost.refused({ messageId: 'one', powNonce: await lost.proof() })).status,
    401,
    'another puzzle is no token',
  )
})
