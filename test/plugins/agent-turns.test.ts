import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith } from '../support/daemon.js'
import { framesOf, runTurn } from '../support/turns.js'

t.test('the demo answers at once, writes its file and asks its question', async t => {
  const { client, workspace } = await daemonWith(t, ['system', 'agent'])
  const started = await client.call('POST /agent', { prompt: '/demo' })
  t.match(started, { delivery: 'started', run: /^r-/, conversationId: /^c-/, messageId: /^m-/ })
  const watched = framesOf(client, started.conversationId)
  const card = await watched.until(({ kind }) => kind === 'question')
  t.same(await client.call('POST /agent/reply', { kind: 'question', requestId: card.requestId }), { ok: true })
  const frames = await watched.all()
  t.match(frames.at(-1)?.event, { kind: 'done', reason: 'completed' })
  t.same(frames.map(({ seq }) => seq), frames.map((_, index) => index + 1))
  console.log(frames.map(f => JSON.stringify(f.event).slice(0, 200)).join('\n'))
  void readFileSync, join, workspace
})

t.test('an isolated turn', async t => {
  const { client, logged } = await daemonWith(t, ['system', 'agent'])
  const frames = await runTurn(client, 'iso', 'write a.txt\n| hello\nrun git status --short\nsay done', { isolated: true })
  console.log(frames.map(f => JSON.stringify(f).slice(0, 300)).join('\n'))
  const again = await runTurn(client, 'iso', 'run cat a.txt\nsay done', { isolated: true })
  console.log(logged.filter(l => l.includes('"level":50') || l.includes('error')).join('\n')); console.log(again.map(f => JSON.stringify(f).slice(0, 300)).join('\n'))
})
