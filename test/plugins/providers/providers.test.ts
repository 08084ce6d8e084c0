import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { parseManifest } from '../../../kernel/manifest.js'
import { ProviderCatalogues } from '../../../plugins/providers/catalogues.js'
import type { ProviderDefinition } from '../../../plugins/providers/contract.js'
import { RESERVED_IDS } from '../../../plugins/providers/reserved-ids.js'
import { until } from '../../support/browser/browser.js'
import { daemonWith, folderOf, type SupportOptions } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { People } from '../../support/people.js'
import { startModelServer } from '../endpoints/model-lists.js'

const PATHS = ['/providers', '/providers/anthropic/models', '/providers/models']

const definitionOf = (id: string, baseUrl: string, more: object = {}) => ({
  id,
  label: id.toUpperCase(),
  serving: 'native',
  protocol: 'openai',
  baseUrl,
  auth: { flows: ['key'], header: 'bearer' },
  models: { open: true, builtIn: [{ id: 'known', label: 'Known' }], ...more },
})

/** A daemon with group providers, and the folder of definitions of its deployment. */
const world = async (
  t: Test,
  files: { [name: string]: object | string } = {},
  { fakes, ...options }: SupportOptions & { folder?: string } = {},
) => {
  const folder = options.folder ?? folderOf(t)
  const [workspace, data, given] = [join(folder, 'workspace'), join(folder, 'data'), join(folder, 'definitions')]
  for (const each of [workspace, given]) mkdirSync(each, { recursive: true })
  const put = (name: string, value: object | string) =>
    writeFileSync(join(given, name), typeof value === 'string' ? value : JSON.stringify(value))
  for (const [name, value] of Object.entries(files)) put(name, value)
  const people = new People()
  people.add('vic@example.org', 'viewer')
  people.add('mai@example.org', 'maintainer')
  const daemon = await daemonWith(t, ['providers'], {
    workspace,
    data,
    deployment: { models: { providers: given } },
    fakes: { ...people.fakes, ...fakes },
  })
  people.admit(daemon)
  return { daemon, folder, put, call: daemon.client.call }
}

t.test('without a credential no call answers; viewers and tokens read all three, but no account', async t => {
  const { daemon } = await world(t)
  const statuses = (headers: { [name: string]: string }, paths = PATHS) =>
    Promise.all(paths.map(async path => (await fetch(daemon.url + path, { headers })).status))
  t.same(await statuses({}), [401, 401, 401])
  t.same(await statuses({ 'x-sandbox-control': (await daemon.token('editor')).token }), [403, 403, 403])
  t.same(await statuses({ authorization: 'Bearer vic@example.org' }), [200, 200, 200])
  const token = (await daemon.token('read')).token
  t.same(await statuses({ 'x-sandbox-control': token }), [200, 200, 200])
  const account = ['/providers/anthropic/models?account=a']
  t.same(await statuses({ 'x-sandbox-control': token }, account), [403])
  t.same(await statuses({ authorization: 'Bearer vic@example.org' }, account), [403])
  t.same(await statuses({ authorization: 'Bearer mai@example.org' }, account), [404])
})

t.test('bad input is refused', async t => {
  const { call, daemon } = await world(t)
  for (const path of ['/providers/NO/models', '/providers/models?limit=0', '/providers/models?ready=yes'])
    t.equal((await daemon.fetch(path)).status, 400, path)
  t.match(await refusalOf(() => call('GET /providers/{provider}/models', { provider: 'nobody' })), { status: 404 })
  for (const after of ['x', Buffer.from('{"at":-1,"provider":"a","model":"b"}').toString('base64url')])
    t.match(await refusalOf(() => call('GET /providers/models', { after })), { status: 400, message: /cursor/ })
})

const PAGES = {
  authorizeUrl: 'https://example.org/auth',
  tokenUrl: 'https://example.org/token',
  deviceUrl: 'https://example.org/device',
}

t.test('the shipped providers are listed with models, and none is ready without an account', async t => {
  const { call } = await world(t)
  const { providers, problems } = await call('GET /providers')
  t.same(problems, [])
  t.ok(providers.length >= 5)
  for (const row of providers) {
    t.match(row, { ready: 'no-account', accounts: 0, detail: /no account/, serving: 'native', paid: true }, row.id)
    // Its list is open to all, so it would be asked.
    if (row.id === 'openrouter') continue
    const found = await call('GET /providers/{provider}/models', { provider: row.id })
    t.ok(found.models.length > 0)
    t.match(found, { source: 'built-in', default: row.default })
  }
})

t.test('a provider that can be asked gives its own order, then its last list, then its definition', async t => {
  const server = await startModelServer(t, {
    protocol: 'openai',
    models: [
      { id: 'b' },
      { id: 'text-embedding-3' },
      { id: 'a' },
      { id: 'old-1' },
      { id: 'whisper-2' },
      { id: 'known' },
    ],
  })
  const files = {
    'acme.json': definitionOf('acme', `${server.url}/v1`, {
      prefer: ['a'],
      ignore: ['old-*'],
      builtIn: [{ id: 'known', label: 'Known', efforts: ['low', 'high'] }],
    }),
  }
  const first = await world(t, files)
  const models = (force = false, call = first.call) =>
    call('GET /providers/{provider}/models', { provider: 'acme', ...(force && { force: '1' }) })
  const live = await models()
  t.match(live, { source: 'live', default: 'a', models: exactly({ id: 'a' }, { id: 'b' }, { id: 'known' }) })
  t.same(live.models[2]!.efforts, ['low', 'high'])
  t.type(live.at, 'number')
  server.script.models = [{ id: 'new' }, { id: 'a' }]
  t.match(await models(), { models: { length: 3 } }, 'the answer in memory counts')
  t.match(await models(true), { source: 'live', models: exactly({ id: 'a' }, { id: 'new' }) })
  server.script.models = []
  t.match(
    await models(true),
    { source: 'stored', models: exactly({ id: 'a' }, { id: 'new' }) },
    'an empty list is not stored',
  )
  await server.stop()
  t.match(await models(true), { source: 'stored', models: { length: 2 } })
  await first.daemon.stop()
  const second = await world(t, {}, { folder: first.folder })
  t.match(await models(false, second.call), { source: 'stored', default: 'a' })
  await second.daemon.stop()
  const kept = globSync('**/catalogues', { cwd: join(first.folder, 'data') })
  t.equal(kept.length, 1)
  rmSync(join(first.folder, 'data', kept[0]!), { recursive: true })
  const third = await world(t, {}, { folder: first.folder })
  t.match(await models(false, third.call), { source: 'built-in', models: exactly({ id: 'known' }), at: undefined })
})

t.test('a provider that hangs is waited for at most 10 s, and then left alone', async t => {
  const server = await startModelServer(t, { protocol: 'openai', models: [], list: 'hangs' })
  const { call } = await world(t, { 'acme.json': definitionOf('acme', `${server.url}/v1`) })
  const began = Date.now()
  t.match(await call('GET /providers/{provider}/models', { provider: 'acme' }), { source: 'built-in' })
  t.ok(Date.now() - began > 9_000)
  await call('GET /providers/{provider}/models', { provider: 'acme' })
  t.equal(server.requests.length, 1, 'it is not asked again at once')
})

t.test('an invalid definition is reported to maintainers, and the others load', async t => {
  const good = definitionOf('good', 'https://models.example.org/v1')
  const { call, daemon } = await world(t, {
    'good.json': good,
    'agent.json': { ...good, id: 'agent' },
    'plain.json': { ...good, id: 'plain', baseUrl: 'http://example.org' },
    'broken.json': '{"id": ',
    'short.json': { id: 'short', label: 'Short' },
    'other.json': { ...good, id: 'another' },
    'flow.json': { ...good, id: 'flow', auth: { flows: ['device'], header: 'bearer' } },
    'grant.json': { ...good, id: 'grant', auth: { flows: ['device'], header: 'bearer', grants: 'key', ...PAGES } },
    'away.json': {
      ...good,
      id: 'away',
      auth: { flows: ['redirect'], header: 'bearer', grants: 'key', redirectUri: 'https://example.org/', ...PAGES },
    },
    'window.json': { ...good, id: 'window', limits: { from: 'headers', windows: [{ kind: 'day', limit: 'x-limit' }] } },
    'notes.txt': 'not a definition',
  })
  const { providers, problems } = await call('GET /providers')
  t.ok(providers.some(({ id }) => id === 'good'))
  t.match(
    problems,
    exactly(
      { file: 'agent.json', message: /reserved/ },
      { file: 'away.json', message: /auth.redirectUri: expected http of this machine/ },
      { file: 'broken.json', message: /expected JSON/ },
      { file: 'flow.json', message: /auth.deviceUrl/ },
      { file: 'grant.json', message: /auth.flows: expected redirect or key .* found device/ },
      { file: 'other.json', message: /expected the id other/ },
      { file: 'plain.json', message: /baseUrl: expected an https address/ },
      { file: 'short.json', message: /expected/ },
      { file: 'window.json', message: /percent, or limit and remaining, for day/ },
    ),
  )
  for (const { id } of providers) t.notMatch(id, /^(agent|plain|broken|short|another|flow)$/)
  const seen = await fetch(`${daemon.url}/providers`, { headers: { authorization: 'Bearer vic@example.org' } })
  t.same(((await seen.json()) as { problems: unknown }).problems, [])
})

t.test('a definition that changes is read again, and a broken one stays as it was', async t => {
  const { call, put } = await world(t, { 'acme.json': definitionOf('acme', 'https://a.example.org/v1') })
  const row = async () => (await call('GET /providers')).providers.find(({ id }) => id === 'acme')
  t.match(await row(), { label: 'ACME' })
  put('acme.json', { ...definitionOf('acme', 'https://a.example.org/v1'), label: 'Acme Ltd.' })
  await until(async () => (await row())?.label === 'Acme Ltd.')
  put('acme.json', '{')
  await until(async () => (await call('GET /providers')).problems.length === 1)
  t.match(await row(), { label: 'Acme Ltd.' })
})

t.test('a shipped definition is replaced by one of the deployment, and none comes from the workspace', async t => {
  const folder = folderOf(t)
  const mine = { ...definitionOf('openai', 'https://proxy.example.org/v1'), label: 'Our proxy' }
  const first = await world(t, { 'openai.json': mine }, { folder })
  const labels = async (call = first.call) =>
    (await call('GET /providers')).providers.filter(({ id }) => id === 'openai').map(({ label }) => label)
  t.same(await labels(), ['Our proxy'])
  await first.daemon.stop()
  const inside = join(folder, 'workspace', 'definitions')
  mkdirSync(inside)
  writeFileSync(join(inside, 'evil.json'), JSON.stringify(definitionOf('evil', 'https://evil.example.org')))
  const daemon = await daemonWith(t, ['providers'], {
    workspace: join(folder, 'workspace'),
    data: join(folder, 'data'),
    deployment: { models: { providers: inside } },
  })
  const { providers, problems } = await daemon.client.call('GET /providers')
  t.notOk(providers.some(({ id }) => id === 'evil'))
  t.match(problems, exactly({ message: /in the workspace/ }))
})

t.test('everything to choose is paged once, the ready first, servers and programs included', async t => {
  const rows = ['s-1', 's-2', 's-3'].map(id => ({ id, label: `Server ${id}`, efforts: [], badges: [] }))
  const { call } = await world(
    t,
    { 'acme.json': definitionOf('acme', 'https://a.example.org/v1', { prices: { known: { input: 1, output: 2 } } }) },
    {
      fakes: {
        'agent.providers': () => ({
          providers: [{ id: 'script', label: 'Script', harnesses: ['native'], models: ['script', 'script-fast'] }],
        }),
        'endpoints.choices': () => ({
          endpoints: [
            { id: 'up', label: 'Up', models: rows, default: 's-1', ready: true },
            { id: 'down', label: 'Down', models: rows, default: 's-1', ready: false, reason: 'it is switched off' },
          ],
        }),
        'capabilities.records': () => ({
          capabilities: [
            { id: 'coder', kind: 'agent', label: 'Coder', config: {}, secrets: [] },
            { id: 'box', kind: 'ssh', label: 'Box', config: {}, secrets: [] },
          ],
        }),
      },
    },
  )
  const all = await call('GET /providers/models', { limit: 500 })
  t.equal(all.total, all.choices.length)
  t.same(
    all.choices.filter(({ ready }) => ready).map(({ provider, model }) => `${provider} ${model.id}`),
    [
      'script script',
      'script script-fast',
      'endpoint/up s-1',
      'endpoint/up s-2',
      'endpoint/up s-3',
      'agent/coder default',
    ],
  )
  t.ok(all.choices.slice(0, 6).every(({ ready }) => ready))
  t.match(
    all.choices.find(({ provider }) => provider === 'acme'),
    { ready: false, price: { input: 1, output: 2 } },
  )
  const paged: string[] = []
  let after: string | undefined
  do {
    const page = await call('GET /providers/models', { q: 'SERVER', limit: 2, ...(after !== undefined && { after }) })
    t.equal(page.total, 6)
    paged.push(...page.choices.map(({ provider, model }) => `${provider} ${model.id}`))
    after = page.cursor
  } while (after !== undefined)
  t.same(
    paged,
    ['up', 'down'].flatMap(id => ['s-1', 's-2', 's-3'].map(model => `endpoint/${id} ${model}`)),
  )
  t.match(await call('GET /providers/models', { provider: 'endpoint/down', ready: '1' }), {
    total: 0,
    choices: { length: 0 },
  })
  t.match((await call('GET /providers')).providers[0], {
    id: 'script',
    ready: 'yes',
    serving: 'script',
    default: 'script',
  })
  t.match(await call('GET /providers/{provider}/models', { provider: 'script' }), {
    source: 'built-in',
    models: exactly({ id: 'script' }, { id: 'script-fast' }),
  })
})

t.test('the price of a model is what its definition says, and otherwise unknown', async t => {
  const { daemon } = await world(t, {
    'acme.json': definitionOf('acme', 'https://a.example.org', {
      prices: { known: { input: 0.5, output: 2, cacheRead: 0.1 } },
    }),
  })
  const price = (provider: string, model: string) =>
    daemon.kernel.calls.answer(
      'definitions.price',
      { provider, model },
      {
        caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' },
        signal: new AbortController().signal,
        trusted: true,
      },
    )
  t.same(await price('acme', 'known'), { price: { input: 0.5, output: 2, cacheRead: 0.1 } })
  for (const [provider, model] of [
    ['acme', 'other'],
    ['acme', 'constructor'],
    ['nobody', 'known'],
    ['endpoint/up', 's-1'],
  ] as const)
    t.same(await price(provider, model), {}, `${provider} ${model}`)
})

t.test('definitions, their catalogues and their models are given to other groups', async t => {
  const models = ['swift-2', 'swift-2-mini', 'old'].map(id => ({ id, label: id }))
  const { daemon } = await world(t, {
    'acme.json': definitionOf('acme', 'https://a.example.org/v1', { open: false, builtIn: models }),
    'bare.json': definitionOf('bare', 'https://a.example.org/v1', { open: false, builtIn: [] }),
  })
  const { signal } = new AbortController()
  const as = { caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' }, signal, trusted: true } as const
  const ask = (call: string, input: object = {}) => daemon.kernel.calls.answer(call, input, as)
  t.match(await ask('definitions.get', { provider: 'acme' }), { definition: { id: 'acme', protocol: 'openai' } })
  t.same(await ask('definitions.get', { provider: 'nobody' }), {})
  const { definitions } = (await ask('definitions.list')) as { definitions: { id: string }[] }
  t.same(
    definitions.slice(-2).map(({ id }) => id),
    ['acme', 'bare'],
  )
  t.match(await ask('definitions.catalogue', { provider: 'acme' }), { source: 'built-in', default: 'swift-2' })
  t.match(await ask('definitions.resolveModel', { provider: 'acme' }), { model: { id: 'swift-2' } })
  t.match(await ask('definitions.resolveModel', { provider: 'acme', model: 'old' }), { model: { id: 'old' } })
  for (const [input, status, message] of [
    [{ provider: 'acme', model: 'swift2' }, 404, /does not offer the model swift2: it has swift-2, swift-2-mini$/],
    [{ provider: 'acme', model: 'zzz' }, 404, /it has swift-2$/],
    [{ provider: 'bare' }, 404, /offers no model/],
    [{ provider: 'nobody' }, 404, /no provider "nobody"/],
  ] as const)
    t.match(await refusalOf(() => ask('definitions.resolveModel', input)), { status, message })
})

t.test('an answer counts for ten minutes', async t => {
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'a' }] })
  const definition = definitionOf('acme', `${server.url}/v1`) as ProviderDefinition
  let now = 1_000_000
  const written: unknown[] = []
  const catalogues = new ProviderCatalogues({
    files: { read: async () => undefined, write: async (_, value) => void written.push(value) },
    signal: new AbortController().signal,
    now: () => now,
    changed: () => {},
  })
  const current = () => catalogues.current(definition, undefined, false)
  t.match(await current(), { source: 'live', models: exactly({ id: 'a' }) })
  server.script.models = [{ id: 'b' }]
  now += 10 * 60_000 - 1
  t.match(await current(), { source: 'live', models: exactly({ id: 'a' }) })
  now += 1
  t.match(await current(), { source: 'live', models: exactly({ id: 'b' }) })
  t.equal(written.length, 2)
})

t.test('no definition can have an id that is the first segment of a path', t => {
  const lines = readFileSync(join(import.meta.dirname, '../../../../test/fixtures/access-lines.json'), 'utf8')
  const planned = [...lines.matchAll(/"call":"\w+ \/([a-z][a-z-]*)/g)].map(([, segment = '']) => segment)
  const manifests = ['endpoints', 'providers', 'agent', 'agents', 'system'].flatMap(name =>
    Object.keys(
      parseManifest(readFileSync(join(import.meta.dirname, `../../../../manifests/${name}.json`), 'utf8'), name).routes,
    ).map(route => route.split('/')[1]!),
  )
  t.ok(planned.length > 300)
  t.same(
    [...new Set([...planned, ...manifests])].filter(segment => !RESERVED_IDS.has(segment) && !segment.startsWith('{')),
    [],
  )
  t.end()
})
