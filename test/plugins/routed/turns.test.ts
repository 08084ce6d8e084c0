import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { exactly } from '../../support/lists.js'
import { modelServer } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'
import { GROUPS, routedWorld } from './support.js'

const TURNS = [...GROUPS, 'agent', 'agents', 'settings']

interface SentTool {
  readonly type: string
  readonly function: {
    readonly name: string
    readonly parameters: { readonly type: string; readonly properties: object }
  }
}

t.test('the loop edits files by two calls at once over a provider of chat completions', async t => {
  const model = await modelServer(t, 'openai', (_, nth) =>
    nth === 0
      ? {
          thoughts: ['two ', 'files'],
          calls: [
            { name: 'Write', input: { path: 'one.txt', content: 'first' } },
            { name: 'Write', input: { path: 'two.txt', content: 'second' } },
          ],
          usage: { input: 10, output: 5, read: 4 },
        }
      : { text: ['Both ', 'are written.'], usage: { input: 20, output: 3 } },
  )
  const it = await routedWorld(t, { groups: TURNS, providers: { acme: { baseUrl: `${model.address}/v1` } } })
  await it.signIn('acme')
  const frames = await runTurn(it.daemon.client, 'one', 'write two files', { agent: 'acme', isolated: false })
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.match(
    frames.filter(({ kind }) => kind === 'error' || kind === 'notice'),
    [],
  )
  for (const [name, text] of [
    ['one.txt', 'first'],
    ['two.txt', 'second'],
  ] as const)
    t.equal(readFileSync(join(it.folder, 'workspace', name), 'utf8'), text)
  t.match(
    frames.flatMap(frame => (frame.kind === 'usage' ? [frame] : [])),
    exactly(
      { inputTokens: 10, outputTokens: 5, cacheReadTokens: 4 },
      { inputTokens: 20, outputTokens: 3, cacheReadTokens: 0 },
    ),
  )
  const [first, second] = model.requests.map(({ body }) => body)
  t.equal(model.requests.length, 2)
  t.match(first, { model: 'm', stream: true, stream_options: { include_usage: true } })
  const tools = first!.tools as unknown as SentTool[]
  t.ok(tools.every(({ type, function: { parameters } }) => type === 'function' && parameters.type === 'object'))
  t.ok(tools.some(({ function: { name } }) => name === 'Write'))
  t.match(
    second!.messages!.slice(-3),
    exactly(
      {
        role: 'assistant',
        reasoning_content: 'two files',
        tool_calls: exactly({ type: 'function' }, { type: 'function' }),
      },
      { role: 'tool', tool_call_id: String },
      { role: 'tool', tool_call_id: String },
    ),
  )
  t.same(second!.tools, first!.tools)
})

t.test('the answer of a whole turn is a refusal in words where no account answers', async t => {
  const model = await modelServer(t, 'openai', () => ({
    ...{ status: 429, headers: { 'retry-after': '7200' } },
    body: JSON.stringify({ error: { message: 'the week is used up' } }),
  }))
  const it = await routedWorld(t, { groups: TURNS, providers: { acme: { baseUrl: `${model.address}/v1` } } })
  await it.signIn('acme')
  const frames = await runTurn(it.daemon.client, 'one', 'hello', { agent: 'acme' })
  t.match(
    frames.find(({ kind }) => kind === 'error'),
    { code: 'rate_limit', message: /the week is used up/ },
  )
  t.match(await it.call('GET /accounts/{provider}/limits', { provider: 'acme' }), {
    limits: exactly({ standing: 'spent' }),
  })
  t.match(
    (await it.call('GET /providers')).providers.find(({ id }) => id === 'acme'),
    {
      serving: 'routed',
      ready: 'spent',
    },
  )
})
