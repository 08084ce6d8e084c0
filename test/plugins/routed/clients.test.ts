import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { exactly } from '../../support/lists.js'
import { modelServer, type ModelServer, type ScriptedReply } from '../../support/servers/model-server.js'
import { responsesServer, type ResponsesServer } from './responses-server.js'
import { routedWorld, type Access, type RoutedWorld } from './support.js'

const SCHEMA = {
  type: 'object',
  properties: {
    path: { type: 'string', description: 'where', minLength: 1 },
    lines: { type: 'array', items: { type: 'integer' } },
  },
  required: ['path'],
  additionalProperties: false,
} as const
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** What the servers say next. */
const next: { reply: ScriptedReply } = { reply: { text: ['hello'] } }
const script = () => next.reply

interface Servers {
  readonly chat: ModelServer
  readonly messages: ModelServer
  readonly responses: ResponsesServer
}
let servers: Servers
let it: RoutedWorld

const openai = ({ baseUrl, bearer }: Access) => new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: bearer, maxRetries: 0 })
const anthropic = ({ baseUrl, bearer }: Access) => new Anthropic({ baseURL: baseUrl, apiKey: bearer, maxRetries: 0 })

t.before(async () => {
  servers = {
    chat: await modelServer(t, 'openai', script),
    messages: await modelServer(t, 'anthropic', script),
    responses: await responsesServer(t, script),
  }
  it = await routedWorld(t, {
    providers: {
      chat: { baseUrl: `${servers.chat.address}/v1` },
      messages: { protocol: 'anthropic', baseUrl: `${servers.messages.address}/v1` },
      responses: { api: 'responses', baseUrl: `${servers.responses.address}/v1` },
    },
  })
  for (const provider of ['chat', 'messages', 'responses']) await it.signIn(provider)
})

const CALLS: ScriptedReply = {
  thoughts: ['think ', 'hard'],
  text: ['I ', 'look'],
  calls: [
    { name: 'read', input: { path: 'a', lines: [1] }, id: 'call_a' },
    { name: 'read', input: { path: 'b' }, id: 'call_b' },
  ],
  usage: { input: 10, output: 7, read: 5 },
}

const inTurns = (name: string, work: (t: Test, provider: keyof Servers) => Promise<void>): void => {
  for (const provider of ['chat', 'messages', 'responses'] as const)
    void t.test(`${name}, over ${provider}`, async t => work(t, provider))
}

inTurns('a client of chat completions streams thoughts, text and two calls', async (t, provider) => {
  next.reply = CALLS
  const access = await it.access(provider)
  const stream = await openai(access).chat.completions.create({
    model: access.model,
    messages: [{ role: 'user', content: 'go' }],
    tools: [{ type: 'function', function: { name: 'read', description: 'Reads.', parameters: SCHEMA } }],
    stream: true,
    stream_options: { include_usage: true },
  })
  const calls: { id?: string; name?: string; text: string }[] = []
  let [text, thought, finish, pieces] = ['', '', '', 0]
  let usage: OpenAI.CompletionUsage | undefined
  for await (const chunk of stream) {
    usage = chunk.usage ?? usage
    const [choice] = chunk.choices
    finish = choice?.finish_reason ?? finish
    const delta = choice?.delta as {
      content?: string
      reasoning_content?: string
    } & OpenAI.ChatCompletionChunk.Choice.Delta
    text += delta?.content ?? ''
    thought += delta?.reasoning_content ?? ''
    for (const call of delta?.tool_calls ?? []) {
      const held = (calls[call.index] ??= { text: '' })
      held.id ??= call.id
      held.name ??= call.function?.name
      held.text += call.function?.arguments ?? ''
      if (call.function?.arguments) pieces++
    }
  }
  t.equal(text, 'I look')
  t.equal(thought, 'think hard')
  t.match(calls, exactly({ name: 'read' }, { name: 'read' }))
  t.same(
    calls.map(({ text: input }) => JSON.parse(input)),
    [{ path: 'a', lines: [1] }, { path: 'b' }],
  )
  t.equal(new Set(calls.map(({ id }) => id)).size, 2)
  t.ok(pieces > 2, 'arguments come in pieces')
  t.equal(finish, 'tool_calls')
  t.match(usage, { prompt_tokens: 15, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 5 } })
})

inTurns('a client of messages streams thoughts, text and two calls', async (t, provider) => {
  next.reply = CALLS
  const access = await it.access(provider, { protocol: 'messages' })
  const stream = anthropic(access).messages.stream({
    model: access.model,
    max_tokens: 500,
    messages: [{ role: 'user', content: 'go' }],
    tools: [{ name: 'read', description: 'Reads.', input_schema: SCHEMA as never }],
  })
  const answer = await stream.finalMessage()
  t.match(
    answer.content,
    exactly(
      { type: 'thinking', thinking: 'think hard' },
      { type: 'text', text: 'I look' },
      { type: 'tool_use', name: 'read', input: { path: 'a', lines: exactly(1) } },
      { type: 'tool_use', name: 'read', input: { path: 'b' } },
    ),
  )
  t.equal(answer.stop_reason, 'tool_use')
  t.match(answer.usage, { output_tokens: 7 })
  if (provider !== 'messages') t.match(answer.usage, { input_tokens: 10, cache_read_input_tokens: 5 })
})

inTurns('a client of responses streams thoughts, text and two calls', async (t, provider) => {
  next.reply = CALLS
  const access = await it.access(provider, { protocol: 'responses' })
  const stream = await openai(access).responses.create({
    model: access.model,
    input: 'go',
    tools: [{ type: 'function', name: 'read', description: 'Reads.', parameters: SCHEMA as never, strict: false }],
    stream: true,
    store: false,
  })
  const events: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  const deltas = (type: string) =>
    events.flatMap(event => (event.type === type && 'delta' in event ? [String(event.delta)] : [])).join('')
  t.equal(deltas('response.output_text.delta'), 'I look')
  t.equal(deltas('response.reasoning_summary_text.delta'), 'think hard')
  const last = events.at(-1)
  t.equal(last?.type, 'response.completed')
  if (last?.type !== 'response.completed') return
  t.match(
    last.response.output.map(({ type }) => type),
    exactly('reasoning', 'message', 'function_call', 'function_call'),
  )
  t.match(last.response.usage, { input_tokens: 15, output_tokens: 7, input_tokens_details: { cached_tokens: 5 } })
  const calls = last.response.output.flatMap(item =>
    item.type === 'function_call' ? [JSON.parse(item.arguments) as object] : [],
  )
  t.same(calls, [{ path: 'a', lines: [1] }, { path: 'b' }])
})

/** The same conversation in each protocol: a picture, an answer with a thought and two calls, and their results. */
const PICTURE = `data:image/png;base64,${PIXEL}`
const TALK = {
  chat: [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'look' },
        { type: 'image_url', image_url: { url: PICTURE } },
      ],
    },
    {
      role: 'assistant',
      content: 'ok',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } },
        { id: 'c2', type: 'function', function: { name: 'read', arguments: '{"path":"b"}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'A' },
    { role: 'tool', tool_call_id: 'c2', content: 'B' },
  ],
}

inTurns('a whole conversation of chat completions arrives', async (t, provider) => {
  const whole = { choices: [{ message: { role: 'assistant', content: 'done' }, finish_reason: 'stop' }] }
  next.reply =
    provider === 'chat'
      ? { status: 200, body: JSON.stringify(whole) }
      : { text: ['done'], usage: { input: 1, output: 1 } }
  const access = await it.access(provider)
  const { data, response } = await openai(access)
    .chat.completions.create({
      model: access.model,
      messages: TALK.chat as never,
      tools: [{ type: 'function', function: { name: 'read', parameters: SCHEMA } }],
      tool_choice: { type: 'function', function: { name: 'read' } },
      parallel_tool_calls: false,
      max_completion_tokens: 99,
      temperature: 0.5,
      stop: ['END'],
      logprobs: true,
    })
    .withResponse()
  t.match(data.choices[0], { message: { content: 'done' }, finish_reason: 'stop' })
  const body = servers[provider].requests.at(-1)!.body
  const dropped = response.headers.get('x-translator-dropped') ?? ''
  if (provider === 'chat') return void t.match(body, { model: 'm', logprobs: true, messages: TALK.chat })
  t.match(dropped, /logprobs/)
  if (provider === 'messages') {
    t.match(body, {
      ...{ model: 'm', max_tokens: 99, stop_sequences: exactly('END'), temperature: 0.5 },
      system: exactly({ type: 'text', text: 'Be brief.' }),
      tools: exactly({ name: 'read', input_schema: SCHEMA }),
      tool_choice: { type: 'tool', name: 'read', disable_parallel_tool_use: true },
      messages: exactly(
        { role: 'user', content: exactly({ type: 'text', text: 'look' }, { type: 'image', source: { data: PIXEL } }) },
        {
          role: 'assistant',
          content: exactly(
            { type: 'text', text: 'ok' },
            { type: 'tool_use', id: 'c1', name: 'read', input: { path: 'a' } },
            { type: 'tool_use', id: 'c2', name: 'read', input: { path: 'b' } },
          ),
        },
        {
          role: 'user',
          content: exactly(
            { type: 'tool_result', tool_use_id: 'c1', content: 'A' },
            { type: 'tool_result', tool_use_id: 'c2', content: 'B' },
          ),
        },
      ),
    })
    return
  }
  t.match(dropped, /stop_sequences/)
  t.match(body, {
    ...{ model: 'm', max_output_tokens: 99, store: false, parallel_tool_calls: false },
    tools: exactly({ type: 'function', name: 'read', parameters: SCHEMA }),
    tool_choice: { type: 'function', name: 'read' },
  })
  t.match(JSON.stringify(body.input), /"input_image".*"function_call".*"call_id":"c2".*"function_call_output"/)
})

inTurns('an answer with a thought goes back with what its server needs', async (t, provider) => {
  next.reply = CALLS
  const access = await it.access(provider, { protocol: 'messages' })
  const client = anthropic(access)
  const tools = [{ name: 'read', input_schema: SCHEMA as never }]
  const asked = {
    model: access.model,
    max_tokens: 500,
    tools,
    thinking: { type: 'enabled', budget_tokens: 100 },
  } as const
  const first = await client.messages.stream({ ...asked, messages: [{ role: 'user', content: 'go' }] }).finalMessage()
  next.reply = { text: ['done'] }
  const results = first.content.flatMap(block =>
    block.type === 'tool_use'
      ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: [{ type: 'text' as const, text: block.id }] }]
      : [],
  )
  const messages = [
    { role: 'user' as const, content: 'go' },
    { role: 'assistant' as const, content: first.content as never },
    { role: 'user' as const, content: results },
  ]
  await client.messages.stream({ ...asked, messages }).finalMessage()
  const told = JSON.stringify(servers[provider].requests.at(-1)!.body)
  t.match(told, /think hard/)
  if (provider === 'messages') t.match(told, /"signature":"signed"/)
  if (provider === 'responses') t.match(told, /"type":"reasoning".*"encrypted_content":"sealed"/)
  if (provider === 'chat') t.match(told, /"reasoning_content":"think hard"/)
})

t.test('what has another meaning without it is refused in the words of the protocol', async t => {
  const chat = await it.access('chat', { protocol: 'messages' })
  const document = { type: 'document', source: { type: 'url', url: 'https://example.org/a.pdf' } } as const
  const asked = { model: chat.model, max_tokens: 5 }
  const refused = await anthropic(chat)
    .messages.create({ ...asked, messages: [{ role: 'user', content: [document] }] })
    .catch((error: unknown) => error)
  t.match(refused, { status: 400, error: { type: 'error', error: { type: 'invalid_request_error' } } })
  const messages = await it.access('messages')
  const talk = { model: messages.model, messages: [{ role: 'user' as const, content: 'x' }] }
  const forced = { type: 'function', function: { name: 'nobody' } } as const
  const client = openai(messages)
  t.match(await client.chat.completions.create({ ...talk, tool_choice: forced }).catch((error: unknown) => error), {
    status: 400,
    message: /tool_choice/,
  })
  t.match(await client.chat.completions.create({ ...talk, n: 2 }).catch((error: unknown) => error), { status: 400 })
  t.match(
    await client.responses
      .create({ model: talk.model, input: 'x', previous_response_id: 'r' })
      .catch((e: unknown) => e),
    { status: 400, message: /previous_response_id/ },
  )
})

inTurns('a failure in the middle is an error in the protocol of the client', async (t, provider) => {
  next.reply = { text: ['be', 'gin'], error: { type: 'overloaded_error', message: 'too much to do' } }
  const access = await it.access(provider)
  const stream = await openai(access).chat.completions.create({
    ...{ model: access.model, stream: true },
    messages: [{ role: 'user', content: 'go' }],
  })
  let text = ''
  const failed = await (async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
  })().catch((error: unknown) => error)
  t.equal(text, 'begin')
  t.match((failed as Error).message, /too much to do/)
})

t.test('status, words and time of a refusal are those of the provider', async t => {
  next.reply = {
    status: 503,
    headers: { 'retry-after': '7' },
    body: JSON.stringify({ error: { message: 'in maintenance' } }),
  }
  const access = await it.access('chat', { protocol: 'messages' })
  const asked = { model: access.model, max_tokens: 5, messages: [{ role: 'user' as const, content: 'x' }] }
  const refused = await anthropic(access)
    .messages.create(asked)
    .catch((error: unknown) => error as InstanceType<typeof Anthropic.APIError>)
  t.match(refused, { status: 503, message: /in maintenance/ })
  t.match((refused as InstanceType<typeof Anthropic.APIError>).headers?.get('retry-after'), /^[67]$/)
})

t.test('a bearer asks for its own provider alone, and for nothing after its run', async t => {
  next.reply = { text: ['x'] }
  const access = await it.access('chat')
  const asked = (model: string) => ({ model, messages: [{ role: 'user' as const, content: 'x' }] })
  const create = (key: string, model: string) =>
    openai({ ...access, bearer: key })
      .chat.completions.create(asked(model))
      .then(
        () => 200,
        (error: { status?: number }) => error.status,
      )
  t.equal(await create(access.bearer, access.model), 200)
  t.equal(await create(access.bearer, 'messages/m'), 403)
  t.equal(await create(access.bearer, 'm'), 404)
  t.equal(await create('nothing', access.model), 401)
  t.match((await openai(access).models.list()).data, exactly({ id: 'chat/m' }))
  t.match((await anthropic(access).models.list()).data, exactly({ id: 'chat/m', display_name: 'M' }))
  const asksTokens = { model: access.model, messages: [{ role: 'user' as const, content: 'x'.repeat(400) }] }
  t.ok((await anthropic(access).messages.countTokens(asksTokens)).input_tokens > 90)
  const { counts } = await it.release(access.bearer)
  t.match(counts, { answers: 1 })
  t.equal(await create(access.bearer, access.model), 401)
  t.same(await it.release(access.bearer), {})
})
