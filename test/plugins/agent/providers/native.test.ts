import t from 'tap'
import type { WireProtocol } from '../../../../plugins/endpoints/contract.js'
import { exactly } from '../../../support/lists.js'
import { modelServer } from '../../../support/servers/model-server.js'
import { done, nativeRun, NativeWorld, usageOf } from './native-support.js'

const PROTOCOLS: readonly WireProtocol[] = ['openai', 'anthropic', 'ollama']
const PATHS = { openai: '/v1/chat/completions', anthropic: '/v1/messages', ollama: '/api/chat' }

for (const protocol of PROTOCOLS) {
  void t.test(`a turn over ${protocol} thinks, writes text, runs tools and continues with their results`, async t => {
    const server = await modelServer(t, protocol, [
      {
        thoughts: ['hm', ' well'],
        text: ['I ', 'look.'],
        calls: [{ name: 'Read', input: { path: 'a.txt' } }],
        usage: { input: 10, output: 5 },
      },
      { text: ['Done.'], usage: { input: 20, output: 7 } },
    ])
    const world = await nativeRun(server.target(), { tool: ({ name }) => done(`result of ${name}`) })
    t.strictSame(
      world.kinds.filter(kind => kind !== 'context_usage'),
      [
        ...[
          'session',
          'init',
          'thinking',
          'thinking',
          'delta',
          'delta',
          'text_end',
          'usage',
          'tool_call',
          'tool_call_update',
        ],
        ...['delta', 'text_end', 'usage'],
      ],
    )
    t.equal(world.prose, 'I look.\nDone.\n')
    t.match(usageOf(world), { inputTokens: 30, outputTokens: 12, numTurns: 2 })
    t.strictSame(
      server.requests.map(({ path }) => path),
      [PATHS[protocol], PATHS[protocol]],
    )
    t.match(server.told(1), /result of Read/)
    t.equal(server.requests[0]!.headers.authorization, 'Bearer key-123456')
    t.match(server.body(0), { model: 'm', stream: true })
    t.equal(server.body(0).tools?.length, 5)
  })
}

void t.test('the next turn continues the session, and its request begins with the same bytes', async t => {
  for (const protocol of PROTOCOLS) {
    const server = await modelServer(t, protocol, [
      { text: ['Looking.'], calls: [{ name: 'Read', input: { path: 'a.txt' } }] },
      { text: ['One.'] },
      { text: ['Two.'] },
    ])
    const world = await nativeRun(server.target())
    await world.next({ prompt: 'and now?', words: 'and now?' })
    t.equal(world.prose, 'Two.\n')
    const plain = (nth: number) => server.told(nth).replaceAll(/,"cache_control":\{[^}]*\}/g, '')
    t.ok(plain(1).startsWith(plain(0).slice(0, -1)), `${protocol}, within the turn`)
    t.ok(plain(2).startsWith(plain(1).slice(0, -1)), `${protocol}, across turns`)
    t.same(server.body(2).system, server.body(0).system)
    t.same(server.body(2).tools, server.body(0).tools)
    t.match(server.told(2), /and now\?/)
  }
})

void t.test('requests of the messages format have cache breakpoints', async t => {
  const server = await modelServer(t, 'anthropic', [{ text: ['One.'] }])
  await nativeRun(server.target())
  t.match(server.body(0).system?.at(-1), { type: 'text', cache_control: { type: 'ephemeral' } })
  t.match(server.told(0), /"cache_control":\{"type":"ephemeral"\}\}\]\}\]$/)
})

void t.test('signed thoughts are sent back to the model that had them', async t => {
  const server = await modelServer(t, 'anthropic', [
    { thoughts: ['deep'], calls: [{ name: 'Read', input: { path: 'a' } }] },
    { text: ['ok'] },
  ])
  await nativeRun(server.target(), { request: { thinking: true, effort: 'low' } })
  t.match(server.body(0), { thinking: { type: 'enabled', budget_tokens: 4000 } })
  t.match(server.told(1), /"thinking":"deep","signature":"signed"/)
})

void t.test('effort and thinking are passed where the protocol has a field for them', async t => {
  const asked = async (protocol: WireProtocol, request: object) => {
    const server = await modelServer(t, protocol, [{ text: ['ok'] }])
    await nativeRun(server.target(), { request })
    return server.body(0)
  }
  t.equal((await asked('openai', { effort: 'high' })).reasoning_effort, 'high')
  t.match(await asked('anthropic', { effort: 'high' }), { output_config: { effort: 'high' } })
  t.equal((await asked('ollama', { thinking: true })).think, true)
  const quiet = await asked('ollama', {})
  t.notOk('think' in quiet, 'it was not requested')
  t.match(quiet, { options: { num_ctx: 32_768 } })
})

void t.test('a turn without a session gets the record of the conversation', async t => {
  const server = await modelServer(t, 'anthropic', [{ text: ['ok'] }])
  await nativeRun(server.target(), {
    request: {
      history: [
        { index: 0, role: 'assistant', text: 'earlier answer', tools: [] },
        { index: 1, role: 'user', text: 'earlier question' },
      ],
    },
  })
  t.strictSame(
    server.body(0).messages?.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  )
  t.match(server.told(0), /earlier answer.*earlier question.*do it/)
})

void t.test('each answer says what it used: cache reads and writes apart from other input', async t => {
  const server = await modelServer(t, 'anthropic', [
    { calls: [{ name: 'Read', input: { path: 'a' } }], usage: { input: 3, output: 4, read: 100, write: 50 } },
    { text: ['ok'], usage: { input: 5, output: 6, read: 150, write: 10 } },
  ])
  const world = await nativeRun(server.target())
  t.match(
    world.find('usage'),
    exactly(
      { inputTokens: 3, outputTokens: 4, cacheReadTokens: 100, cacheCreationTokens: 50, numTurns: 1 },
      { inputTokens: 5, outputTokens: 6, cacheReadTokens: 150, cacheCreationTokens: 10, numTurns: 1 },
    ),
  )
  t.strictSame(world.find('context_usage'), [
    { kind: 'context_usage', tokens: 157, contextWindow: 100_000 },
    { kind: 'context_usage', tokens: 171, contextWindow: 100_000 },
  ])
})

void t.test('messages during calls reach the model with the results', async t => {
  const said: { messageId: string; text: string; attachments: string[] }[] = []
  const server = await modelServer(t, 'openai', [
    { calls: [{ name: 'Shell', input: { command: 'ls' } }] },
    { text: ['ok'] },
  ])
  const world = await nativeRun(server.target(), {
    said,
    tool: () => {
      said.push({ messageId: 'm-1', text: 'rather the other', attachments: [] })
      return done('listed')
    },
  })
  const { messages } = server.body(1)
  t.strictSame(messages?.at(-1), { role: 'user', content: 'rather the other' })
  t.equal(messages?.at(-2)?.role, 'tool')
  t.equal(world.prose, 'ok\n')
})

void t.test('a message during the final answer of the model is answered too', async t => {
  const said: { messageId: string; text: string; attachments: string[] }[] = []
  const server = await modelServer(t, 'openai', (_, nth) => {
    if (nth === 0) said.push({ messageId: 'm-1', text: 'one more thing', attachments: [] })
    return { text: [`answer ${nth}`] }
  })
  const world = await nativeRun(server.target(), { said })
  t.equal(server.requests.length, 2)
  t.equal(world.prose, 'answer 0\nanswer 1\n')
})

void t.test('attached pictures are sent, other files only named', async t => {
  const folder = t.testdir({ 'p.png': Buffer.from('89504e470d0a1a0a', 'hex') })
  const server = await modelServer(t, 'openai', [
    { status: 400, body: '{"error":{"message":"this model takes no image input"}}' },
    { text: ['ok'] },
  ])
  const attachments = [
    { path: 'p.png', absolute: `${folder}/p.png`, mime: 'image/png', bytes: 8 },
    { path: 'a.csv', absolute: `${folder}/a.csv`, mime: 'text/csv', bytes: 8 },
  ]
  const world = await nativeRun(server.target(), { request: { attachments } })
  const [shown, blind] = [server.told(0), server.told(1)]
  t.match(shown, /data:image\/png;base64,iVBORw0KGgo=/)
  t.match(shown, /Attached: a.csv/)
  t.notMatch(blind, /base64/)
  t.match(world.find('notice'), exactly({ text: /no pictures/ }))
  t.equal(world.prose, 'ok\n')
})

void t.test('in plan mode the model is instructed to plan, and the other instructions are unchanged', async t => {
  const server = await modelServer(t, 'openai', [{ text: ['ok'] }])
  const world = await nativeRun(server.target(), { request: { permissionMode: 'plan' } })
  await world.next()
  const [plan, work] = [server.body(0).messages, server.body(1).messages]
  t.match(plan?.[1]?.content, /Plan mode is on/)
  t.strictSame(plan?.[0], work?.[0])
})

void t.test('a budget that refuses ends the turn before the request to the server', async t => {
  const server = await modelServer(t, 'openai', [{ text: ['ok'] }])
  const world = await nativeRun(server.target(), {
    deps: { admit: async () => ({ ok: false, message: 'the budget of today is spent' }) },
  })
  t.match(world.find('error'), exactly({ message: 'the budget of today is spent' }))
  t.equal(server.requests.length, 0)
})

void t.test('a subagent has its own session', async t => {
  const server = await modelServer(t, 'openai', [{ text: ['ok'] }])
  const world = new NativeWorld({ target: server.target() })
  await world.run()
  const before = await world.sessions.read('native-c-1')
  await world.run(1, { depth: 1 })
  t.strictSame(await world.sessions.read('native-c-1'), before)
  t.equal(server.body(1).messages?.length, 2)
})
