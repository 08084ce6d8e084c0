import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { startModelServer } from './model-lists.js'
import { endpointsWorld } from './support.js'

const MODELS = { openai: [{ id: 'm' }], anthropic: [{ id: 'm' }], ollama: [{ name: 'm' }] }

for (const protocol of ['openai', 'anthropic', 'ollama'] as const) {
  t.test(`a ${protocol} server is proved with a streamed answer and a tool`, async t => {
    const { save, daemon } = await endpointsWorld(t)
    const server = await startModelServer(t, { protocol, models: MODELS[protocol] })
    await save({ id: 'desk', protocol, baseUrl: server.url })
    const found = await daemon.client.call('POST /endpoints/{id}/test', { id: 'desk' })
    t.match(found, { ok: true, models: 1, model: 'm', chat: 'ok', streaming: true, tools: 'ok' })
    t.type(found.latencyMs, 'number')
    const asked = server.requests.filter(({ body }) => body.messages)
    t.same(
      asked.map(({ body }) => [body.stream, body.tools !== undefined]),
      [
        [true, false],
        [true, true],
      ],
    )
  })

  t.test(`a ${protocol} model that refuses a tool is marked, and the mark goes when it takes one`, async t => {
    const { save, daemon, call } = await endpointsWorld(t)
    const server = await startModelServer(t, { protocol, models: MODELS[protocol], refusesTools: true })
    await save({ id: 'desk', protocol, baseUrl: server.url })
    const test = () => daemon.client.call('POST /endpoints/{id}/test', { id: 'desk' })
    t.match(await test(), { ok: true, chat: 'ok', tools: 'unsupported', status: 400, detail: /takes no tools/ })
    t.match(await call('endpoints.target', { id: 'desk' }), {
      models: exactly({ id: 'm', helperOnly: 'no-tool-calls' }),
    })
    server.script.refusesTools = false
    t.match(await test(), { tools: 'ok' })
    const { models } = await daemon.client.call('GET /endpoints/{id}/models', { id: 'desk' })
    t.equal(models[0]!.helperOnly, undefined)
  })
}

t.test('errors of answers are reported', async t => {
  const { save, daemon } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  await save({ id: 'desk', baseUrl: server.url })
  const test = (chat: typeof server.script.chat, tools = true) => {
    server.script.chat = chat
    return daemon.client.call('POST /endpoints/{id}/test', { id: 'desk', tools })
  }
  t.match(await test('cut'), { ok: false, chat: 'failed', streaming: true, detail: /broke off/ })
  t.match(await test('page'), { ok: false, chat: 'failed', detail: /web page/ })
  t.match(await test('whole', false), { ok: true, chat: 'ok', streaming: false, tools: 'untested' })
  t.match(await test('older-limit'), { ok: true, chat: 'ok', tools: 'ok' })
  const busy = { status: 429, body: '{"error":{"message":"slow down"}}', headers: { 'retry-after': '30' } }
  t.match(await test(busy), { ok: false, status: 429, chat: 'failed', tools: 'untested', detail: /slow down/ })
  t.match(await test({ status: 529, body: '{"error":{"message":"overloaded"}}' }), {
    status: 529,
    detail: /overloaded/,
  })
  const { models } = await daemon.client.call('GET /endpoints/{id}/models', { id: 'desk' })
  t.equal(models[0]!.helperOnly, undefined, 'a busy server proves nothing about its tools')
})

t.test('a test suggests the address or the protocol that works', async t => {
  const { save, daemon } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'anthropic', models: [{ id: 'm' }], key: 'the-key-of-it' })
  await save({ id: 'wrong', protocol: 'ollama', baseUrl: server.url, apiKey: 'the-key-of-it' })
  const chat = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  await save({ id: 'call', baseUrl: `${chat.url}/v1/chat/completions` })
  await save({ id: 'deep', baseUrl: `${chat.url}/wrong` })
  await save({ id: 'none', baseUrl: 'http://127.0.0.1:9' })
  const test = (id: string) => daemon.client.call('POST /endpoints/{id}/test', { id })
  t.match(await test('wrong'), {
    ok: false,
    chat: 'skipped',
    models: 0,
    suggestion: { protocol: 'anthropic', baseUrl: undefined },
  })
  t.match(await test('call'), { ok: false, suggestion: { baseUrl: `${chat.url}/v1`, protocol: undefined } })
  t.match(await test('deep'), { ok: false, suggestion: { baseUrl: chat.url } })
  t.match(await test('none'), { ok: false, suggestion: undefined, detail: /nothing listens/ })
})

t.test('one test of a server runs at a time', async t => {
  const { save, daemon } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }], list: 'hangs' })
  server.script.list = undefined as never
  await save({ id: 'desk', baseUrl: server.url })
  server.script.list = 'hangs'
  const { length } = server.requests
  const first = daemon.client.call('POST /endpoints/{id}/test', { id: 'desk' })
  await until(() => server.requests.length > length)
  t.match(await refusalOf(() => daemon.client.call('POST /endpoints/{id}/test', { id: 'desk' })), { status: 429 })
  await server.stop()
  t.match(await first, { ok: false })
  t.match(await daemon.client.call('POST /endpoints/{id}/test', { id: 'desk' }), { ok: false })
})

t.test('a test with a key that cannot be read is refused', async t => {
  const { save, store, daemon } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  await save({ id: 'desk', baseUrl: server.url, apiKey: 'some-key' })
  store.open = false
  t.match(await refusalOf(() => daemon.client.call('POST /endpoints/{id}/test', { id: 'desk' })), { status: 503 })
})
