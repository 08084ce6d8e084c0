import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { NamedModel } from '../../../plugins/workspace/search/named-model.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { embeddingAnswer, embeddingServer, type EmbeddingProtocol } from '../../support/servers/embedding-server.js'
import { modelServer, type ScriptedReply } from '../../support/servers/model-server.js'
import { inner } from '../capabilities/support.js'
import { workspaceWorld } from './support.js'

const GROUPS = ['agent', 'agents', 'capabilities', 'endpoints', 'providers', 'settings', 'system', 'usage']
const SUBJECTS = [
  ['harbour', 'vessel', 'anchor', 'mooring'],
  ['oven', 'flour', 'dough', 'bread'],
]
const FILES: { [path: string]: string } = {
  'src/a.ts': '/** Where a vessel drops its anchor. */\nexport const a = 1\n',
  'src/b.ts': '/** Bakes dough in an oven. */\nexport const b = 2\n',
  'docs/c.md': '# Mooring\n\nThe anchor of a vessel.\n',
  'src/.env': 'TOKEN=in-no-request\n',
  ...Object.fromEntries(
    Array.from({ length: 12 }, (_, at) => [`src/more/${at}.ts`, `export const more${at} = ${at}\n`]),
  ),
}
const KEY = 'endpoint/home:e'
const QUESTION = 'harbour entry'

const until = async (check: () => Promise<boolean>): Promise<void> => {
  for (let asked = 0; !(await check()); asked++) {
    if (asked > 300) throw new Error('it did not come about within 30 s')
    await delay(100)
  }
}

const world = async (t: Test, protocol: EmbeddingProtocol) => {
  const home = await embeddingServer(t, protocol, SUBJECTS)
  const made = await workspaceWorld(t, { files: FILES, groups: GROUPS })
  const { client } = made.daemon
  const prices = { e: { input: 1000, output: 0 } }
  await client.call('POST /endpoints', { id: 'home', kind: 'server', protocol, baseUrl: home.server.address, prices })
  const search = (query = QUESTION) => client.call('GET /workspace/search', { query, mode: 'q' })
  const save = (searchModel: string) => client.call('POST /settings/patch', { set: { searchModel } })
  /** Resolves once files are ranked by the model. */
  const learned = () => until(async () => (await search()).note === undefined)
  const parts = () => home.asked.flat().filter(text => text.includes('\n'))
  return { ...made, client, home, search, save, learned, parts }
}

const tagsOf = ({ groups }: { groups: { path: string; hits: { tags: { kind: string }[] }[] }[] }) =>
  groups.map(({ path, hits }) => [path, ...(hits[0]?.tags.map(({ kind }) => kind) ?? [])])

for (const protocol of ['openai', 'ollama'] as const)
  void t.test(`files are ranked by a model of a person's, asked as ${protocol} is`, async t => {
    const { daemon, client, home, search, save, learned, parts, ask } = await world(t, protocol)

    await t.test('nothing leaves before a person names it, also if a file does that came with the code', async t => {
      const config = join(daemon.workspace, '.sandbox/config')
      mkdirSync(config, { recursive: true })
      writeFileSync(join(config, 'settings.json'), JSON.stringify({ searchModel: KEY }))
      t.same(tagsOf(await search()), [], 'no file has one of the words')
      const read = await daemon.token('read')
      await read.client.call('GET /workspace/search', { query: QUESTION, mode: 'q' })
      t.equal((await ask('vic', `/workspace/search?query=harbour%20entry`)).status, 200)
      t.equal((await client.call('GET /settings')).searchModel, '')
      t.match(
        JSON.stringify(await client.call('GET /system/manifest-problems')),
        /searchModel: endpoint\/home:e does not/,
      )
      await delay(300)
      t.same(home.asked, [])
    })

    await t.test('then parts of files leave in few requests, without secrets, and files are found', async t => {
      await save(KEY)
      t.match((await search()).note, /^endpoint\/home:e did not rank the files: it has learned \d+ of \d+ parts/)
      await learned()
      const found = await search()
      t.same(tagsOf(found), [
        ['src/a.ts', 'sem'],
        ['docs/c.md', 'sem'],
      ])
      t.notOk(found.features.includes('semantic'))
      t.same(
        tagsOf(await search('oven of anchor'))[0],
        ['src/b.ts', 'bm25', 'sem', 'rerank'],
        'what has the words is ranked by both',
      )
      const sent = parts()
      t.ok(sent.includes(`src/a.ts\n${FILES['src/a.ts']}`), 'the path and the lines')
      t.equal(sent.filter(text => /in-no-request/.test(text)).length, 0, 'no file that is named as a secret')
      t.equal(new Set(sent).size, sent.length, 'each part once')
      t.ok(home.asked.filter(texts => texts.some(text => text.includes('\n'))).length <= 2, 'in batches')
      const asked = home.asked.length
      await search()
      t.equal(home.asked.length, asked, 'an equal question is asked once')
      const usage = await client.call('GET /usage/rollup', { by: 'provider,model' })
      t.match(usage.rows, exactly({ provider: 'endpoint/home', model: 'e' }))
      t.ok(usage.rows[0]!.inputTokens > 0 && usage.rows[0]!.costUsd > 0, 'what it costs is in the usage')
    })

    await t.test('a change sends its part alone, a rebuilt index nothing', async t => {
      const before = parts().length
      writeFileSync(join(daemon.workspace, 'src/more/1.ts'), '/** Bread of flour. */\nexport const more1 = 1\n')
      await until(async () => tagsOf(await search('pastry of flour')).some(([path]) => path === 'src/more/1.ts'))
      await learned()
      await until(async () => parts().length === before + 1)
      const folder = join(daemon.data, 'workspace/search')
      for (const name of readdirSync(folder)) if (name.startsWith('index')) rmSync(join(folder, name))
      await until(async () => (await search()).freshness.state === 'fresh')
      await until(async () => tagsOf(await search()).length === 2)
      t.equal(parts().length, before + 1)
    })

    await t.test('a budget holds it, and once it is not named any more nothing leaves', async t => {
      const budget = {
        id: 'none',
        scope: { kind: 'all' },
        period: 'day',
        limitUsd: 0.01,
        at: 'refuse',
        enabled: true,
      } as const
      await client.call('POST /usage/budget', { budgets: [budget] })
      const { note, groups } = await search('a question of its own')
      t.match(note, /^endpoint\/home:e did not rank the files: .*budget/i)
      t.same(
        groups.filter(({ hits }) => JSON.stringify(hits).includes('"sem"')),
        [],
      )
      await client.call('POST /usage/budget', { budgets: [] })
      await save('')
      const asked = home.asked.length
      writeFileSync(join(daemon.workspace, 'src/more/2.ts'), '/** Dough. */\n')
      t.same(tagsOf(await search('harbour and another')), [])
      t.equal((await search('harbour and another')).note, undefined)
      await delay(300)
      t.equal(home.asked.length, asked)
    })
  })

void t.test('people of areas find by it what is in their areas, and nothing else changes it', async t => {
  const { daemon, client, home, search, save, learned, as } = await world(t, 'openai')
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  writeFileSync(join(daemon.workspace, 'docs/d.md'), 'Of nothing.\n')
  await until(
    async () => (await client.call('GET /workspace/search', { query: 'nothing' })).freshness.state === 'fresh',
  )
  await save(KEY)
  const answer = () => as('ann').call('GET /workspace/search', { query: QUESTION, mode: 'q' })
  t.match((await answer()).note, /it has learned a part of the files up to now/, 'no number tells of other files')
  await learned()
  await until(async () => tagsOf(await answer()).length > 0)
  const before = await answer()
  t.same(tagsOf(before), [['docs/c.md', 'sem']])
  rmSync(join(daemon.workspace, 'src'), { recursive: true })
  await learned()
  t.same((await answer()).groups, before.groups)
  home.reply = texts => ({ status: 400, body: JSON.stringify({ error: { message: `no: ${String(texts)}` } }) })
  t.match((await search('of whom is this')).note, /no: of whom is this/)
  const { note } = await answer()
  t.match(note, /did not rank the files: it failed/)
  t.notMatch(note, /of whom/, 'what a server repeats in a refusal may be of other files')
})

void t.test('a model that fails is left out, and the search says so', async t => {
  const { client, home, search, save, learned } = await world(t, 'openai')
  await save(KEY)
  await learned()
  home.reply = () => ({ status: 500, body: '{"error":{"message":"out of order"}}' })
  const { note, groups } = await search('where vessel lies')
  t.match(note, /did not rank the files: the model server failed \(500\).*out of order/)
  t.equal(groups[0]?.path, 'src/a.ts', 'found by its word')
  t.notMatch(JSON.stringify(groups), /"sem"/)
  const asked = home.asked.length
  home.reply = undefined
  t.match((await search('where anchor lies')).note, /out of order/, 'it is left alone for a minute')
  t.equal(home.asked.length, asked)
  await client.call('DELETE /endpoints/{id}', { id: 'home' })
  t.match((await search('where anchor lies')).note, /did not rank the files/)
})

/** What servers answer that is no embedding of two texts. */
const ODD: { readonly [what: string]: ScriptedReply } = {
  'no JSON': { status: 200, body: 'oops' },
  'a list': { status: 200, body: '[]' },
  'an error without status': { status: 200, body: '{"error":"no such model"}' },
  'a page': { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' },
  'one too few': embeddingAnswer('openai', [[1, 2]]),
  'one too many': embeddingAnswer('openai', [[1], [2], [3]]),
  'another length': embeddingAnswer('openai', [[1, 2], [1]]),
  'no numbers': embeddingAnswer('openai', [['a'], ['b']] as never),
  'no number at all': embeddingAnswer('openai', [[], []]),
  'not finite numbers': { status: 200, body: '{"data":[{"embedding":[1e999]},{"embedding":[1]}]}' },
  'very many numbers': embeddingAnswer('openai', [Array(9000).fill(1), Array(9000).fill(1)]),
  'one index twice': { status: 200, body: '{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}' },
  'a far index': { status: 200, body: '{"data":[{"index":0,"embedding":[1]},{"index":1e9,"embedding":[1]}]}' },
  'a name as index': { status: 200, body: '{"data":[{"index":"map","embedding":[1]},{"index":1,"embedding":[1]}]}' },
  '401': { status: 401, body: '{"error":{"message":"who?"}}' },
  '404': { status: 404, body: '{"error":{"message":"model e not found"}}' },
  '429': { status: 429, headers: { 'retry-after': '7' }, body: '{}' },
  silence: { silent: true },
}

void t.test('every odd answer is a refusal in words', async t => {
  let reply: ScriptedReply = ODD['no JSON']!
  const server = await modelServer(t, 'openai', () => reply)
  const anthropic = await modelServer(t, 'anthropic', () => ({ text: ['hello'] }))
  const { daemon } = await workspaceWorld(t, {
    groups: ['agent'],
    fakes: {
      'endpoints.target': ({ id }: { id: string }) => (id === 'claude' ? anthropic : server).target(),
      'secrets.values': () => ({ values: [{ name: 'BAKER', value: 'zanzibar-4711' }], revision: 1 }),
    } as never,
  })
  const embed = (model: string) => inner(daemon, 'agent.embed', { model, texts: ['a', 'b'], timeoutMs: 400 })
  for (const [what, odd] of Object.entries(ODD)) {
    reply = odd
    const refused = await refusalOf(() => embed('endpoint/x:e'))
    t.match(refused, { status: 424, message: /\w+ \w+ \w+/ }, what)
    t.notMatch(String((refused as { message: string }).message), /key-123456/)
  }
  for (const model of ['endpoint/claude:m', 'agent/codex:m', 'nobody', ':m', 'x:'])
    t.match(await refusalOf(() => embed(model)), { status: 422 }, model)
  reply = embeddingAnswer('openai', [
    [1, 2],
    [3, 4],
  ])
  t.same(await embed('endpoint/x:e'), {
    embeddings: [
      [1, 2],
      [3, 4],
    ],
  })
  t.equal(anthropic.requests.length, 0)
  await inner(daemon, 'agent.embed', { model: 'endpoint/x:e', texts: ['a zanzibar-4711 b', 'c'], timeoutMs: 4000 })
  t.same(server.body(-1), { model: 'e', input: ['a {{secret:BAKER}} b', 'c'], encoding_format: 'float' })
  t.equal(server.requests.at(-1)?.path, '/v1/embeddings')
  const ends = ['a', 'x zanzibar-4711', 'x zanzibar-471', 'x zanz', 'x zanzi b']
  reply = embeddingAnswer('openai', Array(ends.length).fill([1]))
  await inner(daemon, 'agent.embed', { model: 'endpoint/x:e', texts: ends, cut: true, timeoutMs: 4000 })
  t.same(server.body(-1).input, ['a', 'x {{secret:BAKER}}', 'x ', 'x ', 'x zanzi b'], 'no value that a cut divided')
})

/** A model over a host and an index in memory; `embed` and `index` answer their calls. */
const alone = (
  embed: (texts: readonly string[]) => readonly (readonly number[])[],
  index: (ask: string, input: { placed?: readonly { vector: readonly number[] }[] }) => unknown,
) => {
  const stored = new Map<string, unknown>()
  const host = {
    serves: async () => true,
    call: async (call: string, input: { texts: string[] }) =>
      call === 'settings.get' ? { searchModel: KEY } : { embeddings: embed(input.texts) },
    store: {
      get: async (key: string) => stored.get(key),
      set: async (key: string, value: unknown) => stored.set(key, value),
    },
    log: { warn: () => {} },
    signal: new AbortController().signal,
  }
  const asked = async (ask: string, input: object) => ({ value: index(ask, input), freshness: { state: 'fresh' } })
  return { stored, model: () => new NamedModel(host as never, { ask: asked } as never) }
}

void t.test('what leaves on one day is bounded, over restarts too', async t => {
  const day = new Date().toISOString().slice(0, 10)
  let embedded = 0
  const { stored, model } = alone(
    texts => (embedded++, texts.map(() => [1])),
    () => ({ parts: 1, known: 1 }),
  )
  t.match(await model().ask('a question', true), { question: { model: KEY, vector: exactly(1) } })
  t.same(stored.get('search/sent'), { day, parts: 0, questions: 10 })
  stored.set('search/sent', { day, parts: 0, questions: 2 * 1024 * 1024 })
  t.match(await model().ask('another', true), { note: /2 MiB of questions sent on one day is reached/ })
  t.equal(embedded, 1)
  stored.set('search/sent', { day: '2020-01-01', parts: 0, questions: 2 * 1024 * 1024 })
  t.match(await model().ask('another', true), { question: { model: KEY } })
  const named = model()
  await Promise.all(['one', 'three'].map(question => named.ask(question, true)))
  t.match(stored.get('search/sent'), { questions: 7 + 3 + 5 }, 'together too')
})

void t.test('where further parts cannot be learned, files are still compared by the others', async t => {
  let known = 89
  const { stored, model } = alone(
    texts => texts.map(() => [1]),
    ask => (ask === 'learned' ? { parts: 100, known, numbers: 1 } : [{ key: 'k', text: 'a text' }]),
  )
  const day = new Date().toISOString().slice(0, 10)
  stored.set('search/sent', { day, parts: 64 * 1024 * 1024, questions: 0 })
  const named = model()
  await named.ask('one', true)
  await delay(20)
  t.match(await named.ask('one', true), { note: /64 MiB of parts sent on one day is reached/ }, 'why there are too few')
  known = 95
  t.match(await named.ask('one', true), { question: { vector: exactly(1) } })
})

void t.test('a model that gives another length of vectors under the same name learns the files anew', async t => {
  const asks: string[] = []
  let numbers = 3
  let known = 1
  const { model } = alone(
    texts => texts.map(() => Array<number>(numbers).fill(1)),
    ask => {
      asks.push(ask)
      if (ask === 'forget') known = 0
      return ask === 'learned' ? { parts: 1, known, ...(known && { numbers: 3 }) } : []
    },
  )
  const named = model()
  t.match(await named.ask('one', true), { question: { vector: exactly(1, 1, 1) } })
  t.notOk(asks.includes('forget'))
  numbers = 2
  t.match(await named.ask('one', true), { question: { vector: exactly(1, 1, 1) } }, 'a question that is known')
  t.match(await named.ask('two', true), { note: /gave 3 numbers for a text and gives 2 now, so it learns/ })
  t.ok(asks.includes('forget'))
})

void t.test('a model whose lengths alternate is not sent the files again and again', async t => {
  let sent = 0
  let placed = 0
  const { model } = alone(
    texts => ((sent += 1), texts.map(() => Array<number>((sent % 2) + 1).fill(1))),
    ask => {
      if (ask === 'place') placed++
      // Each change of the length makes all parts unknown again.
      return ask === 'learned' ? { parts: 100, known: 0 } : ask === 'unplaced' ? [{ key: 'k', text: 'a text' }] : []
    },
  )
  const named = model()
  await named.ask('one', true)
  await delay(50)
  t.match(await named.ask('one', true), { note: /gave 1 numbers for a text and gives 2 now|gave 2 numbers/ })
  t.same([sent, placed], [2, 1])
})
