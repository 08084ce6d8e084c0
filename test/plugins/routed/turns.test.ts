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
  t.same(
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

/** An agent program that asks in the protocol of chat completions, and writes the files that its model calls for. */
const PROGRAM = `
import { createInterface } from 'node:readline'
import { writeFileSync } from 'node:fs'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const say = text => send({ method: 'session/update', params: { sessionId: 's-1', update:
  { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL: model } = process.env
const parameters = { type: 'object', properties: { path: { type: 'string' }, text: { type: 'string' } } }
const tools = [{ type: 'function', function: { name: 'write', parameters } }]
const ask = async messages => {
  const response = await fetch(OPENAI_BASE_URL + '/chat/completions', {
    method: 'POST',
    headers: { authorization: 'Bearer ' + OPENAI_API_KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, tools }),
  })
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()).choices[0].message
}
const prompt = async words => {
  const messages = [{ role: 'user', content: words }]
  for (;;) {
    const answer = await ask(messages)
    messages.push(answer)
    if (!answer.tool_calls) return say(answer.content)
    for (const { id, function: made } of answer.tool_calls) {
      const { path, text } = JSON.parse(made.arguments)
      writeFileSync(path, text)
      messages.push({ role: 'tool', tool_call_id: id, content: 'written' })
    }
  }
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  else if (method === 'session/new') send({ id, result: { sessionId: 's-1' } })
  else if (method === 'session/prompt')
    prompt(params.prompt.map(({ text }) => text).join('\\n'))
      .catch(error => say('it failed: ' + error.message + ' ' + error.cause))
      .then(() => send({ id, result: { stopReason: 'end_turn' } }))
}
`

t.test('a program of chat completions edits files by two calls at once over a provider of messages', async t => {
  const model = await modelServer(t, 'anthropic', (_, nth) =>
    nth === 0
      ? {
          thoughts: ['two files'],
          calls: [
            { name: 'write', input: { path: 'one.txt', text: 'first' } },
            { name: 'write', input: { path: 'two.txt', text: 'second' } },
          ],
          usage: { input: 10, output: 5, read: 4 },
        }
      : { text: ['Both are written.'], usage: { input: 20, output: 3 } },
  )
  const harness = { program: `${process.execPath} agent.mjs`, install: 'it is in the workspace', protocol: 'chat' }
  const it = await routedWorld(t, {
    groups: TURNS,
    files: { 'agent.mjs': PROGRAM },
    providers: { acme: { protocol: 'anthropic', baseUrl: `${model.address}/v1`, harness } },
  })
  await it.signIn('acme')
  const frames = await runTurn(it.daemon.client, 'one', 'write two files', {
    ...{ agent: 'acme', harness: 'vendor-code', isolated: false },
  })
  t.match(
    frames.filter(({ kind }) => kind === 'delta' || kind === 'error'),
    exactly({ text: 'Both are written.' }),
    JSON.stringify(frames),
  )
  t.equal(readFileSync(join(it.folder, 'workspace', 'one.txt'), 'utf8'), 'first')
  t.equal(readFileSync(join(it.folder, 'workspace', 'two.txt'), 'utf8'), 'second')
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { provider: 'acme', model: 'm', harness: 'vendor-code' },
  )
  t.match(
    frames.flatMap(frame => (frame.kind === 'usage' ? [frame] : [])),
    exactly({ inputTokens: 30, outputTokens: 8, cacheReadTokens: 4 }),
  )
  const second = model.body(1)
  t.match(second.tools, exactly({ name: 'write', input_schema: { type: 'object' } }))
  t.match(
    second.messages,
    exactly(
      { role: 'user' },
      {
        role: 'assistant',
        content: exactly({ type: 'thinking', signature: 'signed' }, { type: 'tool_use' }, { type: 'tool_use' }),
      },
      { role: 'user', content: exactly({ type: 'tool_result' }, { type: 'tool_result' }) },
    ),
  )
})
