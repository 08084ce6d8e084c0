import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { askModel } from '../../../../plugins/agent/providers/native/ask.js'
import { AnswerReader } from '../../../../plugins/agent/providers/native/answer.js'
import { offeredName } from '../../../../plugins/agent/providers/native/calls.js'
import { faultFrom, faultOf, type ServerFault } from '../../../../plugins/agent/providers/native/faults.js'
import { spokenIn } from '../../../../plugins/agent/providers/native/spoken.js'
import { modelWire } from '../../../../plugins/agent/providers/native/wire.js'
import { exactly } from '../../../support/lists.js'
import type { EndpointTarget } from '../../../../plugins/endpoints/contract.js'

type Row = object
const piece = (delta: object | null, finish: string | null = null, more: Row = {}): Row => ({
  id: 'c1',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
const said = [
  piece({ role: 'assistant' }),
  piece({ content: 'héllo ' }),
  piece({ content: 'wörld' }),
  piece({}, 'stop'),
]
const call = (given: unknown, more: Row = {}): Row => ({
  index: 0,
  id: 'call_a',
  type: 'function',
  function: { name: 'Read', arguments: given },
  ...more,
})
const calls = (...made: Row[]): Row[] => [...made.map(each => piece({ tool_calls: [each] })), piece({}, 'tool_calls')]
const whole = (message: Row, finish: string): Row => ({
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
  usage: { prompt_tokens: 11, completion_tokens: 7 },
})

const events = (rows: readonly Row[], end = 'data: [DONE]\n\n'): string =>
  rows.map(row => `data: ${JSON.stringify(row)}\n\n`).join('') + end

interface Heard {
  readonly text?: string
  readonly thought?: string
  readonly call?: object
  readonly usage?: object
}
const WORDS: Heard = { text: 'héllo wörld' }
const READS: Heard = { call: { name: 'Read', input: { path: 'a.txt' } } }
const ARGS = '{"path":"a.txt"}'

/** Answers as servers in use write them, and what is heard; of a fault the sentence. */
const ANSWERS: { readonly [what: string]: readonly [body: string, heard: Heard | RegExp] } = {
  plain: [events(said), WORDS],
  'line ends of Windows': [events(said).replaceAll('\n', '\r\n'), WORDS],
  'carriage returns alone': [events(said).replaceAll('\n', '\r'), WORDS],
  'a byte order mark': [`\uFEFF${events(said)}`, WORDS],
  'no blank after the colon': [events(said).replaceAll('data: ', 'data:'), WORDS],
  'comments and other fields': [
    `retry: 3\n\n: ping\n\n${events(said).replaceAll('data:', 'event: x\nid: 1\ndata:')}`,
    WORDS,
  ],
  'data in several lines': [
    said.map(row => `${JSON.stringify(row, null, 1).replace(/^/gm, 'data: ')}\n\n`).join(''),
    WORDS,
  ],
  'an end with blanks': [events(said, 'data: [DONE] \n\n'), WORDS],
  'rubbish after the end': [events(said, 'data: [DONE]\n\ndata: rubbish\n\n'), WORDS],
  'no mark of the end': [events(said, ''), WORDS],
  'no reason of its end': [events(said.slice(0, -1)), WORDS],
  'no end at all': [events(said.slice(0, -1), ''), /ended in the middle/],
  'a last event without its end': [events(said, '').trimEnd(), WORDS],
  'one JSON text': [
    JSON.stringify(whole({ content: 'héllo wörld' }, 'stop')),
    { ...WORDS, usage: { input: 11, output: 7 } },
  ],
  'one JSON text in several lines': [JSON.stringify(whole({ content: 'héllo wörld' }, 'stop'), null, 2), WORDS],
  'one JSON text with a call': [
    JSON.stringify(whole({ content: null, tool_calls: [call(ARGS)] }, 'tool_calls')),
    READS,
  ],
  'a JSON text in each line': [said.map(row => JSON.stringify(row)).join('\n'), WORDS],
  'choices that are null': [events([{ choices: null }, ...said]), WORDS],
  'a delta that is null': [events([piece(null), ...said]), WORDS],
  'counts that are texts or null': [
    events([
      ...said,
      { choices: [], usage: { prompt_tokens: '11', completion_tokens: null, prompt_tokens_details: null } },
    ]),
    { ...WORDS, usage: { input: 11, output: 0 } },
  ],
  'text of an older form': [events([{ choices: [{ index: 0, text: 'héllo wörld', finish_reason: 'stop' }] }]), WORDS],
  'content in parts': [events([piece({ content: [{ type: 'text', text: 'héllo wörld' }] }), piece({}, 'stop')]), WORDS],
  'a message in place of a delta': [events([whole({ content: null, tool_calls: [call(ARGS)] }, 'tool_calls')]), READS],
  'thoughts in the text': [
    events([
      piece({ content: '<thi' }),
      piece({ content: 'nk>hm' }),
      piece({ content: ' hm</th' }),
      piece({ content: 'ink>\n\nhéllo wörld' }),
      piece({}, 'stop'),
    ]),
    { ...WORDS, thought: 'hm hm' },
  ],
  'thoughts without an end': [events([piece({ content: '<think>hm hm' }), piece({}, 'stop')]), { thought: 'hm hm' }],
  'a mark of thoughts later on': [
    events([piece({ content: 'a <think>b</think>' }), piece({}, 'stop')]),
    { text: 'a <think>b</think>' },
  ],
  'the beginning of a mark alone': [events([piece({ content: '<th' }), piece({}, 'stop')]), { text: '<th' }],
  'arguments that are an object': [events(calls(call({ path: 'a.txt' }))), READS],
  'arguments that are null': [events(calls(call(null))), { call: { name: 'Read', input: {} } }],
  'arguments that are encoded twice': [events(calls(call(JSON.stringify(ARGS)))), READS],
  'arguments with a mark behind them': [events(calls(call(`${ARGS}</tool_call>`))), READS],
  'arguments in pieces': [
    events(calls(call('{"path":'), call('"a.txt"}', { id: undefined, function: { arguments: '"a.txt"}' } }))),
    READS,
  ],
  'a name in two pieces': [
    events(
      calls(
        call('', { function: { name: 'Re', arguments: '' } }),
        call(ARGS, { id: undefined, function: { name: 'ad', arguments: ARGS } }),
      ),
    ),
    READS,
  ],
  'a name in pieces of a letter': [
    events(
      calls(
        ...[...'Read'].map((name, at) => call('', { ...(at > 0 && { id: undefined }), function: { name } })),
        call(ARGS, { id: undefined, function: { arguments: ARGS } }),
      ),
    ),
    READS,
  ],
  'a name that is repeated': [events(calls(call('{"path":'), call('"a.txt"}'))), READS],
  'a name that is repeated before its arguments': [events(calls(call(''), call(ARGS, { id: undefined }))), READS],
  'a call whose index is null': [events(calls(call(ARGS, { index: null }))), READS],
  'an error in place of an answer': [
    events([{ error: { message: 'it is loading', code: 503 } }]),
    /failed \(503\).*it says: it is loading/,
  ],
  'an error that is a text': [events([{ error: 'the model is not loaded' }]), /it says: the model is not loaded/],
  'an error by its detail': [events([{ detail: 'the model is not loaded' }]), /it says: the model is not loaded/],
  'an error by its kind': [
    events([{ object: 'error', message: "the model's maximum context length is 10 tokens", code: 40303 }]),
    /too long for the model/,
  ],
  'an error as JSON': [
    JSON.stringify({ error: { message: 'quota is used up', code: 'insufficient_quota' } }),
    /what was paid for is used up; it says: quota/,
  ],
  'an answer that was cut': [events(said).slice(0, 150), /ended in the middle/],
  nothing: ['', /ended in the middle/],
  'another protocol': ['data: hello\n\n', /invalid in its protocol/],
}

const target: EndpointTarget = {
  id: 'odd',
  protocol: 'openai',
  baseUrl: 'http://odd.example',
  headers: {},
  models: [],
} as never

const hear = async (send: typeof fetch, at: EndpointTarget = target): Promise<Heard | ServerFault> => {
  const { model } = await modelWire(at, 'm', {}, undefined, send)
  const reader = new AnswerReader(spokenIn([]))
  try {
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }]
    for await (const part of (await model.doStream({ prompt })).stream) for (const _ of reader.read(part));
    const { parts, usage } = reader.whole()
    const textOf = (kind: string) => parts.map(part => (part.kind === kind && 'text' in part ? part.text : '')).join('')
    return {
      ...(textOf('text') && { text: textOf('text') }),
      ...(textOf('thought') && { thought: textOf('thought') }),
      ...Object.fromEntries(
        parts.flatMap(part => (part.kind === 'call' ? [['call', { name: part.name, input: part.input }]] : [])),
      ),
      usage,
    }
  } catch (error) {
    return faultFrom(error)
  }
}

const answering =
  (pieces: readonly Uint8Array[]): typeof fetch =>
  async () =>
    new Response(
      new ReadableStream({
        start: controller => {
          for (const each of pieces) controller.enqueue(each)
          controller.close()
        },
      }),
    )

for (const [what, [body, expected]] of Object.entries(ANSWERS))
  t.test(`an answer with ${what}`, async t => {
    const bytes = new TextEncoder().encode(body)
    const ways = [[bytes], Array.from(bytes, byte => Uint8Array.of(byte))]
    for (const pieces of ways) {
      const heard = await hear(answering(pieces))
      if (expected instanceof RegExp) t.match((heard as ServerFault).message, expected)
      else t.match(heard, expected)
    }
  })

t.test('a text without any end counts once a second answer ends so, and calls never do', async t => {
  const asking = async (rows: readonly Row[]) => {
    const { model } = await modelWire(target, 'm', {}, undefined, async (...given) =>
      answering([new TextEncoder().encode(events(rows, ''))])(...given),
    )
    const frames = askModel({
      model,
      call: { prompt: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] },
      io: { signal: new AbortController().signal, gap: async () => false },
      spoken: spokenIn([]),
      again: { times: 1, firstMs: 1, mostMs: 1, longestMs: 1 },
    })
    for (;;) {
      const { value, done } = await frames.next()
      if (done) return value.parts
    }
  }
  t.match(await asking(said.slice(0, -1)), exactly({ kind: 'text', text: 'héllo wörld' }))
  await t.rejects(asking(calls(call(ARGS)).slice(0, -1)), /ended in the middle/)
})

t.test('a compressed answer is read', async t => {
  const packings = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync }
  const server = createServer((request, response) => {
    const name = request.url!.split('/')[1] as keyof typeof packings
    response.setHeader('content-encoding', name).end(packings[name](events(said)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  for (const name of Object.keys(packings)) {
    const { model } = await modelWire({ ...target, apiBase: `http://127.0.0.1:${port}/${name}` } as never, 'm', {})
    const reader = new AnswerReader(spokenIn([]))
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }]
    for await (const part of (await model.doStream({ prompt })).stream) for (const _ of reader.read(part));
    t.match(reader.whole().parts, exactly({ kind: 'text', text: 'héllo wörld' }), name)
  }
})

t.test('a server that does not know stream_options is asked without', async t => {
  const asked: object[] = []
  const send: typeof fetch = async (_, init) => {
    const body = JSON.parse(String(init?.body)) as { stream_options?: object }
    asked.push(body)
    if (body.stream_options) throw faultOf(400, 'Unrecognized request argument supplied: stream_options')
    return answering([new TextEncoder().encode(events(said))])('')
  }
  t.match(await hear(send), WORDS)
  t.equal(asked.length, 2)
  const refused = await hear(async () => Promise.reject(faultOf(400, 'this model does not support tools')))
  t.match((refused as ServerFault).message, /does not support tools/)
})

t.test('a tool is found by the name that a model writes', async t => {
  const offered = ['Read', 'docs_lookup', 'a', 'A'].map(name => ({ name }))
  for (const [name, found] of [
    ['Read', 'Read'],
    ['read', 'Read'],
    ['functions.Read', 'Read'],
    ['default_api:read', 'Read'],
    ['tools/docs_lookup', 'docs_lookup'],
    ['a', 'a'],
    ['functions.a', 'functions.a'],
    ['Reader', 'Reader'],
    ['', ''],
  ] as const)
    t.equal(offeredName(offered, name), found)
})
