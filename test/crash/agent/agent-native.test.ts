import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
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

t.test('what a killed turn used is in the ledger, and budgets count it at once, also if it is not resumed', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const server = await modelServer(t, 'openai', ({ text, body }) => {
    if (!text) return LIST
    if (!body.messages?.some(({ role }) => role === 'tool'))
      return { calls: [{ name: 'List', input: {} }], usage: { input: 100, output: 10 } }
    return { text: [...'A long story.'.repeat(100)], everyMs: 200, usage: { input: 200, output: 20 } }
  })
  const daemon = await spawnDaemon(t, where)
  const { baseUrl } = server.target()
  const prices = { '*': { input: 1000, output: 1000 } }
  await daemon.client.call('POST /endpoints', { id: 'local', kind: 'server', protocol: 'openai', baseUrl, prices })
  const all = {
    id: 'all',
    scope: { kind: 'all' },
    period: 'total',
    limitUsd: 0.5,
    at: 'hold',
    enabled: true,
  } as const
  await daemon.client.call('POST /usage/budget', { budgets: [all] })
  const ended = await daemon.client.call('POST /agent', {
    conversationId: 'ended',
    agent: 'endpoint/local',
    prompt: 'go',
  })
  const story = framesOf(daemon.once, 'ended')
  await story.until(({ kind }) => kind === 'delta')
  await daemon.client.call('POST /agent', {
    conversationId: 'parked',
    agent: 'script',
    harness: 'vendor-code',
    prompt: 'usage 100 10 0.75\nsay more',
  })
  const spending = framesOf(daemon.once, 'parked')
  await spending.until(frame => frame.kind === 'permission' && frame.toolName === 'Spend')
  const refused = (to: { client: typeof daemon.client }) =>
    t.rejects(to.client.call('POST /agent', { conversationId: 'new', prompt: 'say hi', unattended: true }), {
      name: 'Refusal',
      reason: 'too-many',
    })
  await refused(daemon)
  await daemon.kill9()
  await Promise.all([story, spending].map(watched => watched.all().catch(() => {})))

  const next = await spawnDaemon(t, where)
  const frames = (await framesOf(next.client, 'ended', { run: ended.run }).all()).map(({ event }) => event)
  t.match(frames.at(-1), { kind: 'done', reason: 'interrupted' })
  t.match((await next.client.call('GET /usage/budget')).budgets, exactly({ spentUsd: 0.11, runningUsd: 0.75 }))
  await refused(next)
  await next.client.call('POST /agent/stop', { conversationId: 'parked' })
  await next.kill9()

  const last = await spawnDaemon(t, where)
  const { rows } = await last.client.call('GET /usage/rollup', { by: 'conversation' })
  t.match(
    rows,
    exactly(
      { conversationId: 'parked', costUsd: 0.75 },
      { conversationId: 'ended', inputTokens: 100, outputTokens: 10, turns: 1, costUsd: 0.11 },
    ),
  )
  t.match((await last.client.call('GET /usage/budget')).budgets, exactly({ spentUsd: 0.86, runningUsd: 0 }))
  await refused(last)
})

t.test('the tokens of a subagent that a kill ended are in the ledger once', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  mkdirSync(join(where.workspace, '.sandbox/config'), { recursive: true })
  writeFileSync(join(where.workspace, '.sandbox/config/settings.json'), JSON.stringify({ autoResumeOnRestart: true }))
  const seen: string[] = []
  const server = await modelServer(t, 'openai', ({ text, body }) => {
    if (!text) return LIST
    const said = JSON.stringify(body['messages'])
    const ofSubagent = said.includes('look around') && !said.includes('"Delegate"')
    seen.push(ofSubagent ? 'subagent' : 'turn')
    const usage = { input: 1000, output: 100 }
    if (!ofSubagent && seen.filter(who => who === 'turn').length === 1)
      return { calls: [{ name: 'Delegate', input: { description: 'look', prompt: 'look around' } }], usage }
    if (!ofSubagent) return { text: ['It is gone.'], usage }
    if (seen.filter(who => who === 'subagent').length === 1)
      return { calls: [{ name: 'Todo', input: { items: [] } }], usage: { input: 300, output: 30 } }
    // The second answer of the subagent, which the kill cuts off.
    return { text: [...'This is a long story.'], everyMs: 200, usage: { input: 9000, output: 900 } }
  })
  const daemon = await spawnDaemon(t, where)
  const { baseUrl } = server.target()
  await daemon.client.call('POST /endpoints', { id: 'local', kind: 'server', protocol: 'openai', baseUrl })
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'k',
    agent: 'endpoint/local',
    permissionMode: 'bypassPermissions',
    prompt: 'delegate',
  })
  const watched = framesOf(daemon.once, 'k')
  await watched.until(frame => frame.kind === 'delta' && frame.parentToolUseId !== undefined)
  await daemon.kill9()
  await watched.all().catch(() => {})
  for (const time of ['first', 'second']) {
    const next = await spawnDaemon(t, where)
    const frames = (await framesOf(next.client, 'k', { run }).all()).map(({ event }) => event)
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    const used = frames.filter(frame => frame.kind === 'usage' && frame.subagent !== undefined)
    t.match(used, exactly({ inputTokens: 300, outputTokens: 30, numTurns: 1 }), time)
    const { rows } = await next.client.call('GET /usage/rollup', { by: 'conversation' })
    t.match(rows, exactly({ conversationId: 'k', inputTokens: 2300, outputTokens: 230 }), time)
    await next.kill9()
  }
  t.same(seen, ['turn', 'subagent', 'subagent', 'turn'], 'the subagent is not repeated')
})
