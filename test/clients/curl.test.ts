import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import t from 'tap'
import { misfits, OPERATIONS } from '../support/schema.js'
import { checkLanded, daemonFor, outputOf, TURN } from './client-turn.js'

const attach = OPERATIONS.find(({ call }) => call === 'POST /agent/attach')!

t.test('curl does a turn with a card and lands it, and every event it is sent is as the document says', async t => {
  const daemon = await daemonFor(t)
  const asking = (path: string, body: object): string[] => [
    '--silent',
    '--show-error',
    '--fail-with-body',
    '--no-buffer',
    `${daemon.url}${path}`,
    '--header',
    `authorization: Bearer ${daemon.session}`,
    '--json',
    JSON.stringify(body),
  ]
  const post = async (path: string, body: object) => JSON.parse(await outputOf('curl', asking(path, body))) as object
  t.match(await post('/agent', TURN), { conversationId: TURN.conversationId, delivery: 'started' })

  const watching = spawn('curl', asking('/agent/attach', { conversationId: TURN.conversationId }), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise(done => watching.on('close', done))
  const seen: string[] = []
  let event = ''
  for await (const line of createInterface(watching.stdout)) {
    if (line.startsWith('event: ')) event = line.slice('event: '.length)
    if (!line.startsWith('data: ')) continue
    const data = JSON.parse(line.slice('data: '.length)) as { event?: { kind: string; requestId: string } }
    t.same(misfits(attach.responses[200]!.content!['text/event-stream']!.schema, { event, data }), [])
    seen.push(event === 'message' ? (data.event?.kind ?? event) : event)
    if (data.event?.kind !== 'question') continue
    t.same(
      await post('/agent/reply', {
        kind: 'question',
        requestId: data.event.requestId,
        answers: { 'Which language?': 'French' },
      }),
      { ok: true },
    )
  }
  t.equal(await ended, 0, 'a stream that ended is none that was cut')
  t.equal(seen.at(-1), 'done')
  t.ok(seen.includes('question') && seen.includes('resolved'))
  t.match(await post(`/agents/${TURN.conversationId}/land`, { mode: 'check' }), { landed: true })
  await checkLanded(t, daemon)
})
