import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { folderOf } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { startModelServer } from './model-lists.js'
import { endpointsWorld } from './support.js'

const CALLS: [method: string, path: string, body?: object][] = [
  ['GET', '/endpoints'],
  ['GET', '/endpoints/trial/status'],
  ['GET', '/endpoints/desk/models'],
  ['POST', '/endpoints', { id: 'desk', kind: 'server', protocol: 'openai', baseUrl: 'http://127.0.0.1:9' }],
  ['POST', '/endpoints/desk/test', {}],
  ['DELETE', '/endpoints/desk'],
]
const KEY = 'key-2f6c1d5e9a'
const HEADER = 'header-8842aa01'

t.test('without a credential no call answers, and only maintainers change and test', async t => {
  const { daemon, save } = await endpointsWorld(t)
  const { url } = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  await save({ id: 'desk', baseUrl: url })
  const send = (headers: { [name: string]: string }) =>
    Promise.all(
      CALLS.slice(0, 5).map(async ([method, path, body]) => {
        const response = await fetch(daemon.url + path, {
          method,
          headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
          ...(body && { body: JSON.stringify(body) }),
        })
        return response.status
      }),
    )
  t.same(await send({}), [401, 401, 401, 401, 401])
  for (const person of ['vic', 'cas'])
    t.same(await send({ authorization: `Bearer ${person}@example.org` }), [200, 200, 200, 403, 403], person)
  for (const scope of ['read', 'drive', 'land'] as const)
    t.same(await send({ 'x-sandbox-control': (await daemon.token(scope)).token }), [200, 200, 200, 403, 403], scope)
  const editor = (await daemon.token('editor')).token
  t.same(await send({ 'x-sandbox-control': editor }), [403, 403, 403, 403, 403])
  const removed = await fetch(`${daemon.url}/endpoints/desk`, {
    method: 'DELETE',
    headers: { authorization: 'Bearer cas@example.org', 'content-type': 'application/json' },
    body: '{}',
  })
  t.equal(removed.status, 403)
})

t.test('invalid servers are refused by field, and nothing is stored', async t => {
  const { daemon, store, save } = await endpointsWorld(t)
  const own = new URL(daemon.url).port
  const refused: [number, Parameters<typeof save>[0], string][] = [
    [400, { id: 'a b', baseUrl: 'http://127.0.0.1:9' }, 'id'],
    [400, { id: '', baseUrl: 'http://127.0.0.1:9' }, 'id'],
    [400, { id: 'x'.repeat(61), baseUrl: 'http://127.0.0.1:9' }, 'id'],
    [400, { id: 'a', baseUrl: 'ftp://127.0.0.1' }, 'baseUrl'],
    [400, { id: 'a', baseUrl: 'http://' }, 'baseUrl'],
    [400, { id: 'a', baseUrl: 'http://127.0.0.1:9', protocol: 'soap' as 'openai' }, 'protocol'],
    [400, { id: 'a', baseUrl: 'http://127.0.0.1:9', label: 'x'.repeat(81) }, 'label'],
    [400, { id: 'a', baseUrl: 'http://127.0.0.1:9', headers: 'x-good: 1\nno colon' }, 'headers: line 2'],
    [400, { id: 'a', baseUrl: 'http://127.0.0.1:9', headers: 'bad name: 1' }, 'headers: line 1'],
    [400, { id: 'a', baseUrl: 'http://127.0.0.1:9', headers: 'host: elsewhere' }, 'headers: line 1'],
    [409, { id: 'trial', baseUrl: 'http://127.0.0.1:9' }, 'reserved'],
    [409, { id: 'local-model', baseUrl: 'http://127.0.0.1:9' }, 'reserved'],
    [409, { id: 'free-trial', baseUrl: 'http://127.0.0.1:9' }, 'reserved'],
    [422, { id: 'a', baseUrl: 'http://ada:secret@127.0.0.1:9' }, 'without user'],
    [422, { id: 'a', baseUrl: 'http://127.0.0.1:9/?key=1' }, 'without'],
    [422, { id: 'a', baseUrl: `http://127.0.0.1:${own}` }, 'this sandbox itself'],
    [422, { id: 'a', baseUrl: `http://localhost:${own}/v1` }, 'this sandbox itself'],
    [422, { id: 'a', baseUrl: 'http://169.254.169.254/v1' }, 'secrets'],
    [422, { id: 'a', baseUrl: 'http://127.0.0.1:9', apiKey: '__vaulted__' }, 'none is stored'],
    [400, { id: 'a', baseUrl: 'http://127.0.0.1:9', apiKey: `${KEY}\n` }, 'without a line break'],
    [400, { id: 'a', baseUrl: 'http://127.0.0.1:9', apiKey: 'gr\u00fc\u2603' }, 'one line'],
  ]
  for (const [status, given, words] of refused) {
    const refusal = await refusalOf(() => save(given))
    t.match(refusal, { status }, JSON.stringify(given).slice(0, 80))
    t.match(`${refusal.message} ${JSON.stringify(refusal.detail.errors)}`, words)
  }
  t.match(await refusalOf(() => save({ id: 'a', baseUrl: 'http://127.0.0.1:9', headers: 'oh-no' })), {
    detail: { errors: exactly({ path: 'headers.1' }) },
  })
  store.records.set('box', { id: 'box', kind: 'ssh', label: 'box', config: {}, secrets: [] })
  t.match(await refusalOf(() => save({ id: 'box', baseUrl: 'http://127.0.0.1:9' })), { status: 409 })
  t.same([...store.records.keys()], ['box'])
  t.same([...store.values.keys()], [])
})

t.test('each protocol is listed at its path with its own key header, with any version segment', async t => {
  const { save, daemon } = await endpointsWorld(t)
  const cases = [
    ['openai', '/v1', '/v1/models', 'authorization', `Bearer ${KEY}`],
    ['anthropic', '/v1', '/v1/models?limit=1000', 'x-api-key', KEY],
    ['ollama', '/api', '/api/tags', 'authorization', `Bearer ${KEY}`],
  ] as const
  for (const [protocol, segment, path, header, value] of cases) {
    const models = protocol === 'ollama' ? [{ name: 'm:1', model: 'm:1' }] : [{ id: 'm:1' }]
    const server = await startModelServer(t, { protocol, models, key: KEY })
    for (const [id, baseUrl] of [
      [`${protocol}-a`, server.url],
      [`${protocol}-b`, `${server.url}/`],
      [`${protocol}-c`, server.url + segment],
      [`${protocol}-d`, `${server.url}${segment}/`],
    ] as const) {
      server.requests.length = 0
      const row = await save({ id, protocol, baseUrl, apiKey: KEY, headers: '# a note\n\nx-team: red' })
      t.match(row, { status: 'ready', models: 1, default: 'm:1', hasKey: true, headerNames: exactly('x-team') }, id)
      t.match(server.requests[0], { method: 'GET', path, headers: { [header]: value, 'x-team': 'red' } }, id)
    }
    const won = { authorization: 'Bearer mine', 'x-api-key': 'mine' }[header]
    server.script.key = 'mine'
    await save({
      id: `${protocol}-e`,
      protocol,
      baseUrl: server.url,
      apiKey: KEY,
      headers: `${header.toUpperCase()}: ${won}`,
    })
    t.equal(server.requests.at(-1)!.headers[header], won, 'the header of the user wins')
  }
  const { endpoints } = await daemon.client.call('GET /endpoints')
  t.equal(endpoints.length, 15)
})

t.test('a list without version segment and a list under another version are found', async t => {
  const { save, call } = await endpointsWorld(t)
  const plain = await startModelServer(t, { protocol: 'openai', base: '/v1beta/openai', models: [{ id: 'm' }] })
  t.match(await save({ id: 'plain', baseUrl: `${plain.url}/v1beta/openai` }), { status: 'ready' })
  t.match(await call('endpoints.target', { id: 'plain' }), {
    baseUrl: `${plain.url}/v1beta/openai`,
    apiBase: `${plain.url}/v1beta/openai`,
  })
  const fourth = await startModelServer(t, { protocol: 'openai', base: '/paas/v4', models: [{ id: 'm' }] })
  t.match(await save({ id: 'fourth', baseUrl: `${fourth.url}/paas/v4/` }), { status: 'ready' })
  t.match(await call('endpoints.target', { id: 'fourth' }), { apiBase: `${fourth.url}/paas/v4` })
})

t.test('models that do not chat are left out, and what a server says of the others is shown', async t => {
  const { save, daemon } = await endpointsWorld(t)
  const { url } = await startModelServer(t, {
    protocol: 'openai',
    models: [
      { id: 'maker/coder-7b.gguf', context_length: 32768, description: 'codes' } as object,
      { id: 'text-embedding-3-small' },
      { id: 'whisper-1' },
      { id: 'tts-1-hd' },
      { id: 'dall-e-3' },
      { id: 'bge-reranker-v2' },
      { id: 'omni-moderation-latest' },
      { id: 'painter', architecture: { output_modalities: ['image'] } } as object,
      { id: 'maker/coder-7b.gguf' },
      { id: 'thinker', display_name: 'The thinker', supported_parameters: ['reasoning'] } as object,
      { id: 7 } as object,
    ],
  })
  await save({ id: 'desk', baseUrl: url })
  t.same(await daemon.client.call('GET /endpoints/{id}/models', { id: 'desk' }), {
    models: [
      { id: 'maker/coder-7b.gguf', label: 'coder-7b', efforts: [], badges: [] },
      { id: 'thinker', label: 'The thinker', efforts: [], badges: ['reasoning'] },
    ],
    default: 'maker/coder-7b.gguf',
  })
})

t.test('what a server of tags shows of its models counts', async t => {
  const { save, daemon } = await endpointsWorld(t)
  const { url } = await startModelServer(t, {
    protocol: 'ollama',
    models: [
      {
        name: 'deep:8b',
        show: {
          capabilities: ['completion', 'tools', 'thinking'],
          model_info: { 'general.architecture': 'q', 'q.context_length': 4096 },
        },
      } as object,
      { name: 'vectors', show: { capabilities: ['embedding'] } } as object,
    ],
  })
  await save({ id: 'desk', protocol: 'ollama', baseUrl: url })
  t.same((await daemon.client.call('GET /endpoints/{id}/models', { id: 'desk' })).models, [
    { id: 'deep:8b', label: 'deep:8b', efforts: [], badges: ['reasoning'], contextWindow: 4096 },
  ])
})

t.test('a server that cannot be used says in one sentence what is wrong', async t => {
  const { save } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  const elsewhere = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  const stands = async (list: typeof server.script.list) => {
    server.script.list = list
    // Another address, so that it is asked again.
    return save({ id: 'desk', baseUrl: `${server.url}/${'/'.repeat(server.requests.length)}` })
  }
  const redirect = await stands({ redirect: `${elsewhere.url}/v1/models` })
  t.match(redirect, { status: 'error', detail: /redirects to .*which is not followed/ })
  t.equal(elsewhere.requests.length, 0, 'nothing of another origin is asked')
  t.match(await stands('page'), { status: 'error', detail: /web page instead of a list/ })
  t.match(await stands('broken'), { status: 'error', detail: /did not answer with JSON/ })
  t.match(await stands('cut'), { status: 'unreachable', detail: /broke its answer off/ })
  t.match(await stands({ status: 200, body: '{"ok":true}' }), { status: 'error', detail: /not a list of models/ })
  t.match(await stands({ status: 500, body: '{"error":"out of memory"}' }), { detail: /failed \(500\).*out of memory/ })
  t.match(await stands({ status: 429, body: '{}' }), { status: 'error', detail: /limits its rate/ })
  t.match(await stands({ status: 401, body: '{"error":{"message":"no"}}' }), {
    status: 'refused',
    detail: /asks for a key \(401\)/,
  })
  t.match(await stands({ status: 404, body: '' }), { status: 'error', detail: /nothing is at .*404/ })
  t.match(await save({ id: 'other', baseUrl: 'http://127.0.0.1:9' }), {
    status: 'unreachable',
    detail: /nothing listens/,
  })
  t.match(await save({ id: 'noname', baseUrl: 'http://no-such-host.invalid' }), { detail: /no address is known/ })
  server.script.models = []
  t.match(await stands(undefined), { status: 'empty', default: '', models: 0, detail: /load one/ })
})

t.test('a redirect within the origin is followed', async t => {
  const { save } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', base: '/x/v1', models: [{ id: 'm' }] })
  const front = await startModelServer(t, { protocol: 'openai', models: [], list: { redirect: '/v1/models' } })
  t.match(await save({ id: 'loop', baseUrl: front.url }), { status: 'error', detail: /more than 5 times/ })
  t.match(await save({ id: 'desk', baseUrl: `${server.url}/x` }), { status: 'ready' })
})

t.test('a server that does not answer within 10 s is unreachable', async t => {
  const { save } = await endpointsWorld(t)
  const { url } = await startModelServer(t, { protocol: 'openai', models: [], list: 'hangs' })
  const began = Date.now()
  t.match(await save({ id: 'desk', baseUrl: url }), { status: 'unreachable', detail: /did not answer within 10 s/ })
  t.ok(Date.now() - began >= 9_500)
})

t.test('of a list that is too long the whole rows count', async t => {
  const { save } = await endpointsWorld(t)
  const { url } = await startModelServer(t, { protocol: 'openai', models: [], list: 'huge' })
  const row = await save({ id: 'desk', baseUrl: url })
  t.equal(row.status, 'ready')
  t.ok(row.models > 1000 && row.models <= 5000, String(row.models))
})

t.test('the last list is kept when the server stops, and over a restart', async t => {
  const folder = folderOf(t)
  const place = { workspace: join(folder, 'w'), data: join(folder, 'd') }
  execFileSync('mkdir', ['-p', place.workspace])
  const first = await endpointsWorld(t, place)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  await first.save({ id: 'desk', baseUrl: server.url })
  await first.save({ id: 'never', baseUrl: 'http://127.0.0.1:9' })
  await server.stop()
  await first.daemon.stop()
  const { daemon } = await endpointsWorld(t, { ...place, store: first.store })
  t.match(await daemon.client.call('GET /endpoints/{id}/models', { id: 'desk' }), {
    models: exactly({ id: 'm' }),
    default: 'm',
  })
  t.same(await daemon.client.call('GET /endpoints/{id}/models', { id: 'never' }), { models: [], default: '' })
  t.match(
    (await daemon.client.call('GET /endpoints')).endpoints,
    exactly({ id: 'desk', status: 'unreachable', models: 1 }, { id: 'never', status: 'unreachable', models: 0 }),
  )
})

t.test('saving the same again changes nothing, a key left out stays, and an empty one is removed', async t => {
  const { save, store } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }], key: KEY })
  const given = { id: 'desk', baseUrl: server.url, apiKey: KEY, label: 'Desk' }
  await save(given)
  const { length } = server.requests
  await save(given)
  await save({ id: 'desk', baseUrl: server.url })
  await save({ id: 'desk', baseUrl: server.url, apiKey: '__vaulted__' })
  t.equal(store.puts, 1)
  t.equal(server.requests.length, length)
  t.match(await save({ id: 'desk', baseUrl: server.url, label: 'Mine' }), {
    label: 'Mine',
    hasKey: true,
    status: 'ready',
  })
  t.match(await save({ id: 'desk', baseUrl: server.url, apiKey: '' }), { hasKey: false, status: 'refused' })
  t.match(await save({ id: 'desk', baseUrl: server.url, apiKey: 'wrong-key' }), {
    status: 'refused',
    detail: /refuses the key \(401\)/,
  })
})

t.test('the prices of a server stay until others are given, and turns and their choice have them', async t => {
  const { save, store, daemon, call } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }, { id: 'n' }] })
  const prices = { m: { input: 1, output: 4 }, '*': { input: 2, output: 8 } }
  const given = { id: 'desk', baseUrl: server.url }
  t.same((await save({ ...given, prices })).prices, prices)
  t.same((await save({ ...given, label: 'Mine' })).prices, prices)
  const { puts } = store
  await save({ ...given, prices })
  t.equal(store.puts, puts)
  const priceOf = async (id: string, model: string) => (await call('endpoints.price', { id, model })).price
  t.same(await priceOf('desk', 'm'), prices.m)
  t.same(await priceOf('desk', 'n'), prices['*'])
  t.equal(await priceOf('other', 'm'), undefined)
  t.match((await call('endpoints.choices', {} as never)).endpoints, exactly({ id: 'desk', prices }))
  const wrong = { ...given, kind: 'server', protocol: 'openai', prices: { m: { input: -1, output: 1 } } } as const
  t.match(await refusalOf(() => daemon.client.call('POST /endpoints', wrong)), {
    status: 400,
    message: /prices\.m\.input: expected a number, from 0/,
  })
  t.equal((await save({ ...given, prices: {} })).prices, undefined)
  t.equal(await priceOf('desk', 'm'), undefined)
})

t.test('a key and a header value are in no answer, log or file', async t => {
  const { save, daemon } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }], key: 'another' })
  const answers = [
    await save({ id: 'desk', baseUrl: server.url, apiKey: KEY, headers: `x-pass: ${HEADER}` }),
    await daemon.client.call('POST /endpoints/{id}/test', { id: 'desk' }),
    await daemon.client.call('GET /endpoints'),
  ]
  t.match(answers[1], { ok: false, detail: /is not known/ }, 'the words of the server hold the key, and are shown')
  const files = globSync('**/*', { cwd: daemon.data, withFileTypes: true })
    .filter(file => file.isFile())
    .map(file => readFileSync(join(file.parentPath, file.name), 'latin1'))
  t.ok(files.length > 0)
  const everything = [JSON.stringify(answers), ...daemon.logged, ...files].join('\n')
  for (const value of [KEY, HEADER]) t.notOk(everything.includes(value))
})

t.test('a stored key that cannot be sent is reported, in the list and to a turn', async t => {
  const { save, store, call, daemon } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  await save({ id: 'keyed', baseUrl: server.url, apiKey: KEY })
  store.values.set('keyed/apiKey', `${KEY}\nx-evil: 1`)
  t.match(await call('endpoints.target', { id: 'keyed' }), { problem: /its key has a line break .*: save it again/ })
  t.match((await daemon.client.call('GET /endpoints')).endpoints, exactly({ status: 'unavailable', detail: /save it/ }))
})

t.test('without an open secret store a key is refused, and a server without one works', async t => {
  const { save, store, call } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  await save({ id: 'keyed', baseUrl: server.url, apiKey: KEY })
  store.open = false
  t.match(await save({ id: 'desk', baseUrl: server.url }), { status: 'ready' })
  t.match(await refusalOf(() => save({ id: 'more', baseUrl: server.url, apiKey: KEY })), {
    status: 503,
    message: /POST \/secrets\/store/,
  })
  t.notOk(store.records.has('more'))
  t.match(await call('endpoints.target', { id: 'keyed' }), { problem: /secret store/ })
})

t.test('without the group capabilities nothing is stored and the list is empty', async t => {
  const { daemon, save } = await endpointsWorld(t, { bare: true })
  t.same(await daemon.client.call('GET /endpoints'), { endpoints: [] })
  t.match(await refusalOf(() => save({ id: 'desk', baseUrl: 'http://127.0.0.1:9' })), {
    status: 503,
    message: /without that group/,
  })
})

t.test('a server removed is gone with its list, and a second time succeeds', async t => {
  const { save, store, daemon, call } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  await save({ id: 'desk', baseUrl: server.url, apiKey: KEY })
  t.equal(globSync('**/desk*', { cwd: daemon.data }).length, 1)
  for (let times = 0; times < 2; times++)
    t.same(await daemon.client.call('DELETE /endpoints/{id}', { id: 'desk' }), { ok: true })
  t.same([store.records.size, store.values.size], [0, 0])
  t.same(globSync('**/desk*', { cwd: daemon.data }), [])
  t.match(await refusalOf(() => call('endpoints.target', { id: 'desk' })), { status: 404 })
  t.match(await refusalOf(() => daemon.client.call('GET /endpoints/{id}/models', { id: 'desk' })), { status: 404 })
  t.match(await refusalOf(() => daemon.client.call('POST /endpoints/{id}/test', { id: 'desk' })), { status: 404 })
})

t.test('a server stored as a capability is listed, and its change is noticed', async t => {
  const { store, daemon } = await endpointsWorld(t)
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
  await daemon.client.call('GET /endpoints')
  store.records.set('cap', {
    id: 'cap',
    kind: 'endpoint',
    label: 'cap',
    config: { protocol: 'openai', baseUrl: server.url },
    secrets: [],
  })
  daemon.kernel.events.emit('capability.connected', { id: 'cap', kind: 'endpoint' })
  t.match((await daemon.client.call('GET /endpoints')).endpoints, exactly({ id: 'cap', status: 'loading' }))
  await until(async () => (await daemon.client.call('GET /endpoints')).endpoints[0]?.status === 'ready')
  t.equal(server.requests.length, 1, 'one answer counts for all reads')
})

t.test(
  'a self-signed certificate is accepted on this machine, and a certificate of another name or issuer is not',
  async t => {
    const folder = folderOf(t)
    const made = (name: string, ...more: string[]) => {
      const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)]
      const args = [
        'req',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-keyout',
        key,
        '-out',
        cert,
        '-days',
        '2',
        '-subj',
        `/CN=${name}`,
      ]
      execFileSync('openssl', [...args, '-x509', ...more], { stdio: 'ignore' })
      return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
    }
    const { save } = await endpointsWorld(t)
    const own = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] }, { tls: made('127.0.0.1') })
    t.match(await save({ id: 'own', baseUrl: own.url }), { status: 'ready' })
    made('root')
    const issued = made('leaf', '-CA', join(folder, 'root.pem'), '-CAkey', join(folder, 'root.key'))
    const other = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] }, { tls: issued })
    t.match(await save({ id: 'other', baseUrl: other.url }), {
      status: 'error',
      detail: /certificate .* cannot be verified/,
    })
  },
)
