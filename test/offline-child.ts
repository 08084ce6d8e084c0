import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from './support/daemon.js'
import { framesOf } from './support/turns.js'
import { DEMO } from '../plugins/agent/providers/script/help.js'

// Run where there is no network but the machine's own address.
t.test('the demo on a fresh sandbox', async t => {
  t.ok(
    Object.values(networkInterfaces())
      .flat()
      .every(found => found!.internal),
    'there is no way out',
  )
  const reached = await fetch('http://192.0.2.1/').then(
    () => 'a host',
    (error: Error & { cause?: { code?: string } }) => error.cause?.code,
  )
  t.equal(reached, 'ENETUNREACH')
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const { client, ...daemon } = await spawnDaemon(t, where)
  const before = performance.now()
  const { run, conversationId } = await client.call('POST /agent', { prompt: '/demo' })
  t.ok(performance.now() - before < 1000, 'it is answered within a second')
  t.match(run, /^r-/)
  const watched = framesOf(client, conversationId, { run })
  const { requestId, ...card } = await watched.until(({ kind }) => kind === 'question')
  const {
    questions: [asked],
  } = card as unknown as { questions: { question: string; options: { label: string }[] }[] }
  const [, said] = /write (?:\S+)\n((?:\|.*\n)+)/.exec(DEMO)!
  t.equal(readFileSync(join(where.workspace, 'sandbox-demo.md'), 'utf8'), said!.replace(/^\| ?/gm, ''))
  await client.call('POST /agent/reply', {
    kind: 'question',
    requestId,
    answers: { [asked!.question]: asked!.options[0]!.label },
  })
  const frames = (await watched.all()).map(({ event }) => event)
  t.ok(frames.some(({ kind }) => kind === 'thinking'))
  t.match(
    frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join(''),
    `You chose: ${asked!.options[0]!.label}`,
  )
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  await daemon.terminate()
})
