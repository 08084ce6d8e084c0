import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { modelServer, type ScriptedReply } from '../../support/servers/model-server.js'
import { framesOf } from '../../support/turns.js'

const LIST: ScriptedReply = { status: 200, body: '{"data":[{"id":"m"}]}' }

t.test('a killed turn on a model server repeats no tool call and counts its tokens once', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  mkdirSync(join(where.workspace, '.sandbox/config'), { recursive: true })
  writeFileSync(join(where.workspace, '.sandbox/config/settings.json'), JSON.stringify({ autoResumeOnRestart: true }))
  let asked = 0
  const server = await modelServer(t, 'openai', ({ text }) => {
    if (!text) return LIST
    asked++
    if (asked === 1)
      return {
        text: ['Appending. '],
        calls: [{ name: 'Append', input: { path: 'count.txt', content: 'x' } }],
        usage: { input: 100, output: 10 },
      }
    // The answer that the kill interrupts, then the same answer complete.
    return {
      text: [...'It is done, and here is a long story about it.'],
      everyMs: asked === 2 ? 200 : 0,
      usage: { input: 200, output: 20 },
    }
  })
  const daemon = await spawnDaemon(t, where)
  const { baseUrl } = server.target()
  await daemon.client.call('POST /endpoints', { id: 'local', kind: 'server', protocol: 'openai', baseUrl })
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'k',
    agent: 'endpoint/local',
    isolated: true,
    prompt: 'append',
  })
  const watched = framesOf(daemon.once, 'k')
  await watched.until(frame => frame.kind === 'delta' && frame.text.startsWith('I'))
  await daemon.kill9()
  await watched.all().catch(() => {})
  const next = await spawnDaemon(t, where)
  const frames = (await framesOf(next.client, 'k', { run }).all()).map(({ event }) => event)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.equal(readFileSync(join(where.data, 'agent/checkouts/k/count.txt'), 'utf8'), 'x', 'appended once')
  const prose = frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')
  t.equal(prose.split('It is done').length, 2, 'no text appears twice')
  const { total } = await next.client.call('GET /usage/rollup', { provider: 'endpoint/local' })
  t.match(total, { inputTokens: 300, outputTokens: 30 })
  t.equal(asked, 3, 'the interrupted request is sent once more')
})
