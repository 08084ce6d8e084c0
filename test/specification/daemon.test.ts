import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import type { ExtensionList } from '../../plugins/extensions/contract.js'
import { refusalOf } from '../kernel/auth/memory.js'
import { approvePending, listedUntil, writeExtension } from '../plugins/extensions/support.js'
import { entryOf, startFileServer, weightsOf } from '../plugins/endpoints/weights.js'
import { until } from '../support/browser/browser.js'
import { daemonWith, folderOf, makeWorkspace } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { startAccountServer } from '../support/servers/account-server.js'
import { OPERATIONS } from '../support/schema.js'
import { shownServers } from '../support/servers/shown-servers.js'
import { framesOf, runTurn } from '../support/turns.js'
import { refusedBy, targetOf, type Asked } from './asked.js'
import { readTables, type Row } from './tables.js'

const tables = readTables()
/** Exits are not built yet. */
const isPlanned = (words: string): boolean => words.includes('/exit') || words.startsWith('exit ')

const accounts = await startAccountServer(t)
const weights = weightsOf()
const files = await startFileServer(t, weights)
const folder = folderOf(t)
const workspace = join(folder, 'workspace')
const definitions = join(folder, 'definitions')
const local = join(folder, 'models.json')
for (const each of [workspace, definitions]) mkdirSync(each, { recursive: true })
makeWorkspace(workspace, { 'README.md': '# work\n', 'docs/a.md': 'a\n', 'a/b/c/d/e/f/g.txt': 'deep\n' })
writeFileSync(join(definitions, 'acme.json'), JSON.stringify(accounts.definition('acme', {})))
writeFileSync(local, JSON.stringify([entryOf(files.url, weights)]))
const daemon = await daemonWith(t, [], {
  workspace,
  data: join(folder, 'data'),
  deployment: { models: { providers: definitions, local } },
})
const { client } = daemon
const { call } = client
const servers = shownServers(t, workspace)

const send = async (
  asked: Asked,
): Promise<{ status: number; body: { message?: string; errors?: { path: string }[] } }> => {
  const [method = 'GET'] = asked.call.split(' ')
  const response = await daemon.fetch(targetOf(asked), {
    method,
    ...(method !== 'GET' && { body: JSON.stringify(asked.body) }),
  })
  return { status: response.status, body: (await response.json()) as object }
}

t.test('the daemon serves the document that is published', async t => {
  const served = (await (await daemon.fetch('/openapi.json')).json()) as {
    info: object
    paths: object
    openapi: string
  }
  const published = JSON.parse(readFileSync('openapi/openapi.json', 'utf8')) as { paths: object }
  t.same(served.paths, published.paths)
  t.match(served, { openapi: /^3\.1/, info: { version: '1' } })
})

t.test('each call refuses what its table does not allow, and names the field', async t => {
  for (const shown of tables.calls.filter(({ call }) => !isPlanned(call)))
    for (const { asked, field, why } of refusedBy(shown)) {
      const { status, body } = await send(asked)
      const named = body.errors?.some(({ path }) => path.split(/[.[\]]/).includes(field)) ?? false
      t.same([status, typeof body.message, named], [400, 'string', true], `${shown.call}: ${why}`)
    }
})

t.test('every verb that reads and needs no words answers', async t => {
  const tried = []
  for (const file of globSync('dist/plugins/*/cli.js').sort()) {
    const { cli } = (await import(pathToFileURL(file).href)) as { cli: { verbs: { [verb: string]: Verb } } }
    for (const [verb, { call: read, args = [], fill }] of Object.entries(cli.verbs)) {
      if (args.length > 0) continue
      const operation = OPERATIONS.find(each => each.call === read && each.method === 'GET')
      const given = fill?.({}) ?? {}
      if (!operation || operation.parameters.some(({ name, required }) => required && !(name in given))) continue
      const isInPath = (name: string) => operation.path.includes(`{${name}}`)
      const part = (fits: (name: string) => boolean) =>
        Object.fromEntries(Object.entries(given).filter(([name]) => fits(name)))
      const asked = { call: read, path: part(isInPath), query: part(name => !isInPath(name)), body: {} }
      const response = await daemon.fetch(targetOf(asked))
      await response.body?.cancel()
      const name = `${file.split('/')[2]} ${verb}`
      tried.push(name)
      t.equal(response.status, 200, name)
    }
  }
  t.ok(tried.length > 50, `${tried.length} verbs`)
})

t.test('no call answers without a credential', async t => {
  for (const { call: shown } of tables.calls.filter(({ call }) => !isPlanned(call))) {
    const [method = ''] = shown.split(' ')
    const path = targetOf({ call: shown, path: {}, query: {}, body: {} })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(daemon.url + path, { method, ...(method !== 'GET' && { body: '{}', headers }) })
    t.match({ status: response.status, body: await response.json() }, { status: 401, body: { message: String } }, shown)
  }
})

t.test('the settings of the specification have their defaults, and all of them are kept', async t => {
  const fields = tables.records['settings']!.filter(({ path }) => !path.includes('.'))
  const before = (await call('GET /settings')) as unknown as { [key: string]: unknown }
  t.same(
    fields.filter(({ path }) => !(path in before)).map(({ path }) => path),
    [],
  )
  const rule = {
    id: 'check',
    label: 'Check',
    moment: 'push.starting',
    when: { repo: 'root', paths: ['docs/**'], outcome: ['clean', 'error', 'conflict'] },
    action: { kind: 'command', command: 'true', timeoutMs: 1000 },
    enabled: false,
  }
  const admission = Object.fromEntries(
    tables.records['settings']!.filter(({ path }) => path.startsWith('admission.')).map(({ path, values }) => [
      path.slice('admission.'.length),
      values!.at(-1),
    ]),
  )
  const given: { [key: string]: unknown } = {
    rules: [rule],
    admission,
    systemPrompt: 'Be kind.',
    agentRunEffort: 'high',
    commandRules: { 'git.publish': 'hold' },
    actionRules: {},
  }
  const changed = Object.fromEntries(
    fields.map(({ path, type, values }) => {
      const now = before[path]
      if (path in given) return [path, given[path]]
      if (type === 'boolean') return [path, now !== true]
      if (type === 'number') return [path, now === 1 ? 0 : 1]
      return [path, values?.find(value => value !== now) ?? now]
    }),
  )
  t.same(await call('POST /settings', changed as never), { ok: true })
  t.match(await call('GET /settings'), changed)
  t.same(await call('POST /settings', before as never), { ok: true })
})

t.test('a persona keeps every field of the specification', async t => {
  const powers = Object.fromEntries(
    tables.records['powers']!.map(({ path, type, values }) => [path, values?.[1] ?? (type === 'boolean' ? true : [])]),
  )
  const persona = {
    id: 'ada',
    label: 'Ada',
    capabilities: [],
    brief: 'Reviews.',
    powers,
    workspace: { startIn: 'docs', folders: ['docs'] },
    context: { repos: [] },
    briefing: { omit: tables.records['persona']!.find(({ path }) => path === 'briefing.omit')!.values },
    models: [{ provider: 'script', model: 'script', effort: 'high', thinking: true, fast: true, harness: 'native' }],
    systemPromptMode: 'vendor',
  }
  t.same(await call('POST /personas', persona as never), { ok: true })
  const { personas } = await call('GET /personas')
  t.same(
    personas.find(({ id }) => id === 'ada'),
    { ...persona, connected: [] },
  )
})

/** A card that waits for its answer. */
const parked = async (conversationId: string) => {
  await call('POST /agent', { conversationId, prompt: 'ask which?\n| one: first\n| two: second\nsay on' })
  return framesOf(client, conversationId).until(({ kind }) => kind === 'question')
}
const cardOf = (id: string) => call('GET /agents/{id}', { id: id as never })
const signIns = async () => (await call('GET /accounts/{provider}', { provider: 'acme' })).signIns
const starts = () => call('POST /{provider}/login/start', { provider: 'acme' })
const prefetch = async () => (await call('GET /endpoints/local-model/fit')).prefetch!
const portRow = async (port: number) => (await call('GET /ports')).ports.find(each => each.port === port)
const withToken = (token: string) =>
  daemon.fetch('/agents', { headers: { authorization: '', 'x-sandbox-control': token } }).then(({ status }) => status)
const mint = (expiresAt?: number) =>
  call('POST /system/control/tokens', { label: 'ci', scope: 'read', ...(expiresAt && { expiresAt }) })

const BACKEND = 'export const activate = () => {}\n'
const stateOf = ({ extensions }: ExtensionList): string | undefined =>
  extensions.find(({ id }) => id === 'ada.notes')?.backend?.state
const builtIn = async () => (await call('GET /extensions')).extensions.find(({ source }) => source === 'builtin')!.id

interface Verb {
  readonly call: string
  readonly args?: readonly string[]
  readonly fill?: (input: object) => { readonly [field: string]: unknown }
}

type Check = (t: Test) => Promise<unknown>

/** What shows a row of a table, by the words of the row; a row without one fails. */
const rowsShown = (title: string, rows: readonly Row[], checks: { readonly [row: string]: Check }): void =>
  void t.test(title, async t => {
    const named = rows
      .map(row => ({ row, words: row.slice(0, 3).join(' · ') }))
      .filter(({ words }) => !isPlanned(words))
    t.same(Object.keys(checks).sort(), named.map(({ words }) => words).sort(), 'each row is shown')
    for (const [words, check] of Object.entries(checks)) await t.test(words, async t => void (await check(t as Test)))
  })

let card: { requestId: string }
let port = 0
let shownToken = { id: '', token: '' }
let signIn: Awaited<ReturnType<typeof starts>>

rowsShown('every transition is taken', tables.transitions, {
  'conversation does not exist · POST /agent naming it · always': async t => {
    t.match(await refusalOf(() => call('GET /agents/{id}', { id: 'fresh' as never })), { status: 404 })
    await runTurn(client, 'fresh', 'say hello')
    t.match(await cardOf('fresh'), { id: 'fresh' })
  },
  'conversation free · POST /agent · conversation free': async t => {
    const started = await call('POST /agent', { conversationId: 'fresh', prompt: 'wait words 60000\nsay $words' })
    t.match(started, { run: String, delivery: 'started' })
  },
  'conversation running · POST /agent · turn accepts words mid-way': async t => {
    const { run } = await call('POST /agent', { conversationId: 'words', prompt: 'wait words 60000\nsay heard $words' })
    t.match(await call('POST /agent', { conversationId: 'words', prompt: 'left' }), { run, delivery: 'said' })
    const frames = await framesOf(client, 'words', { run }).all()
    t.ok(frames.some(({ event }) => event.kind === 'delta' && event.text === 'heard left'))
  },
  'conversation running · POST /agent · otherwise': async t => {
    const waits = await call('POST /agent', { conversationId: 'fresh', prompt: 'say next', errand: 'ci-fix' })
    t.equal(waits.delivery, 'queued')
    await call('POST /agent/steer', { conversationId: 'fresh', text: 'go' })
    const frames = await framesOf(client, 'fresh', { run: waits.run }).all()
    t.ok(frames.some(({ event }) => event.kind === 'delta' && event.text === 'next'))
  },
  'turn parked on a card · POST /agent/reply · card answered': async t => {
    card = await parked('parked')
    t.same(
      await call('POST /agent/reply', { kind: 'question', requestId: card.requestId, answers: { 'which?': 'one' } }),
      {
        ok: true,
      },
    )
    t.match((await framesOf(client, 'parked').all()).at(-1)?.event, { kind: 'done', reason: 'completed' })
  },
  'turn running · POST /agent/steer · running turn': async t => {
    const { run } = await call('POST /agent', { conversationId: 'steered', prompt: 'wait words 60000\nsay $words' })
    t.same(await call('POST /agent/steer', { conversationId: 'steered', text: 'right' }), { ok: true })
    const frames = (await framesOf(client, 'steered', { run }).all()).map(({ event }) => event)
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    t.ok(frames.some(frame => frame.kind === 'delta' && frame.text === 'right'))
  },
  'turn running · POST /agent/stop · always': async t => {
    await call('POST /agent', { conversationId: 'halted', prompt: 'write kept.txt\n| kept\nsay on\nwait words 60000' })
    await framesOf(client, 'halted').until(({ kind }) => kind === 'delta')
    t.match(await call('POST /agent/stop', { conversationId: 'halted' }), { ok: true })
    t.match((await framesOf(client, 'halted').all()).at(-1)?.event, { kind: 'done', reason: 'stopped' })
    t.equal(readFileSync(join(workspace, 'kept.txt'), 'utf8'), 'kept\n')
    rmSync(join(workspace, 'kept.txt'))
  },
  'any not running · POST /agent/rewind · message has saved state': async t => {
    await runTurn(client, 'back', 'write back.txt\n| one', { isolated: true })
    await runTurn(client, 'back', 'append back.txt\n| two')
    t.match(await call('POST /agent/rewind', { conversationId: 'back', index: 2 }), { snapshot: String, dropped: 2 })
    const { content } = (await call('GET /workspace/file', { path: 'back.txt', agent: 'back' as never })) as {
      content?: string
    }
    t.equal(content, 'one\n')
  },
  'prefetch idle · POST /endpoints/local-model/prefetch start · always': async t => {
    t.match(await prefetch(), { state: 'idle' })
    files.script.holdsAfter = 1000
    t.match(await call('POST /endpoints/local-model/prefetch', { action: 'start' }), { state: 'downloading' })
  },
  'prefetch downloading · same route stop · always': async t => {
    await until(async () => (await prefetch()).receivedBytes > 0)
    t.match(await call('POST /endpoints/local-model/prefetch', { action: 'stop' }), {
      state: 'idle',
      receivedBytes: 1000,
    })
    delete files.script.holdsAfter
    await call('POST /endpoints/local-model/prefetch', { action: 'start' })
    await until(async () => (await prefetch()).state === 'held')
    t.match(files.asked.at(-1), { range: 'bytes=1000-' }, 'a later start resumes')
  },
  'port not forwarded · POST /ports/forward · always': async t => {
    port = await servers.ask({ listen: '127.0.0.1' })
    await until(async () => (await portRow(port)) !== undefined)
    const first = await call('POST /ports/forward', { port })
    t.match(first, { previewUrl: String })
    t.same(await call('POST /ports/forward', { port }), first)
    t.match(await portRow(port), { forwarded: true, ...first })
  },
  'port forwarded · POST /ports/unforward · always': async t => {
    const { previewUrl } = (await portRow(port))!
    t.same(await call('POST /ports/unforward', { port }), { ok: true })
    t.equal((await portRow(port))?.forwarded, false)
    const { host, port: at } = new URL(previewUrl!)
    const gone = await fetch(`http://127.0.0.1:${at}/`, { headers: { host } })
    t.notOk(gone.ok)
  },
  'workspace extension pending · POST /extensions/{id}/approve · digest matches the powers shown': async t => {
    writeExtension(daemon, 'notes', { publisher: 'ada', name: 'notes', server: 'server.js' }, { 'server.js': BACKEND })
    const { digest } = await listedUntil(daemon, ({ pending }) => pending.find(({ id }) => id === 'ada.notes'))
    const stale = digest.replace(/^./, first => (first === '0' ? '1' : '0'))
    t.match(await refusalOf(() => call('POST /extensions/{id}/approve', { id: 'ada.notes', digest: stale })), {
      status: 409,
    })
    t.same(await call('POST /extensions/{id}/approve', { id: 'ada.notes', digest }), { ok: true })
    t.ok(await listedUntil(daemon, list => stateOf(list) === 'running'))
  },
  'workspace extension approved · code edit · no new power declared': async t => {
    const commit = (await call('GET /extensions')).extensions.find(({ id }) => id === 'ada.notes')!.commit
    writeExtension(
      daemon,
      'notes',
      { publisher: 'ada', name: 'notes', server: 'server.js' },
      { 'server.js': `${BACKEND}// edited\n` },
    )
    await listedUntil(daemon, ({ extensions }) =>
      extensions.some(each => each.id === 'ada.notes' && each.commit !== commit),
    )
    t.ok(await listedUntil(daemon, list => stateOf(list) === 'running'))
  },
  'extension enabled · POST /extensions/{id}/enabled with false · always': async t => {
    t.same(await call('POST /extensions/{id}/enabled', { id: 'ada.notes', enabled: false }), { ok: true })
    t.not(stateOf(await call('GET /extensions')), 'running', 'it stops at once')
    await call('POST /extensions/{id}/enabled', { id: 'ada.notes', enabled: true })
  },
  'workspace extension approved · code edit · a power not previously held is declared': async t => {
    const manifest = {
      publisher: 'ada',
      name: 'notes',
      server: 'server.js',
      permissions: { daemon: ['GET /activity'] },
    }
    writeExtension(daemon, 'notes', manifest, { 'server.js': BACKEND })
    const found = await listedUntil(daemon, ({ pending }) => pending.find(({ id }) => id === 'ada.notes'))
    t.match(found, { approvedBefore: true, added: exactly(/GET \/activity/) })
    await approvePending(daemon, 'ada.notes')
  },
  'provider sign-in started · POST /{vendor_a}/login/start · always': async t => {
    signIn = await starts()
    t.match(signIn, { url: String, handshake: String, expiresAt: Number })
    t.match(await signIns(), exactly({ handshake: signIn.handshake, state: 'waiting' }))
  },
  'provider sign-in waiting · POST /{vendor_a}/login/cancel · handshake given': async t => {
    t.same(await call('POST /{provider}/login/cancel', { provider: 'acme', handshake: signIn.handshake }), { ok: true })
    t.match(await signIns(), exactly({ handshake: signIn.handshake, state: 'abandoned' }))
  },
  'control token · minting · owner session': async t => {
    shownToken = await mint()
    t.match(shownToken, { id: String, token: String })
    t.equal(await withToken(shownToken.token), 200)
    const { tokens } = await call('GET /system/control/tokens')
    t.notMatch(JSON.stringify(tokens), shownToken.token, 'it is shown once')
  },
  'control token active · revocation or expiry · always': async t => {
    await call('DELETE /system/control/tokens/{id}', { id: shownToken.id as never })
    t.equal(await withToken(shownToken.token), 401)
    const { token } = await mint(Date.now() + 300)
    await until(async () => (await withToken(token)) === 401)
  },
})

rowsShown('every refusal is the one of its row', tables.errors, {
  'POST /agent/rewind · a turn is running · refused': async t => {
    await call('POST /agent', { conversationId: 'back', prompt: 'wait words 60000' })
    t.match(await refusalOf(() => call('POST /agent/rewind', { conversationId: 'back', index: 0 })), { status: 409 })
    await call('POST /agent/stop', { conversationId: 'back' })
  },
  'POST /agent/rewind · the message has no saved state · refused': async t => {
    await call('POST /agent', { conversationId: 'shared', prompt: 'wait words 60000' })
    const running = framesOf(client, 'shared')
    await running.until(({ kind }) => kind === 'init')
    await call('POST /agent/steer', { conversationId: 'shared', text: 'go on' })
    await running.all()
    const { messages } = await call('GET /agents/{id}/transcript', { id: 'shared' })
    const index = messages.findLastIndex(({ role }) => role === 'user')
    t.ok(index > 0, 'it was sent into a running turn')
    t.match(await refusalOf(() => call('POST /agent/rewind', { conversationId: 'shared', index })), { status: 409 })
  },
  'POST /secrets · the sandbox has nowhere to keep secrets · refused': async t => {
    t.match(
      readFileSync('test/plugins/secrets/secrets.test.ts', 'utf8'),
      /\^the sandbox has nowhere to keep secrets/,
      'it needs a folder of its own',
    )
  },
  'POST /extensions/{id}/settings · key never declared by the extension · refused, nothing stored': async t => {
    const change = { id: 'ada.notes', settings: { unknown: 'x' } }
    t.match(await refusalOf(() => call('POST /extensions/{id}/settings', change)), { status: 422 })
    t.same(await call('GET /extensions/{id}/settings', { id: 'ada.notes' }), { settings: {}, secretsSet: [] })
  },
  'POST /extensions/{id}/remove · extension is built in · cannot be removed': async t => {
    const id = await builtIn()
    t.match(await refusalOf(() => call('POST /extensions/{id}/remove', { id })), { status: 409 })
  },
  'GET /extensions/{id}/removal · extension cannot be removed · answers with blocked giving the reason': async t => {
    t.match(await call('GET /extensions/{id}/removal', { id: await builtIn() }), { source: 'builtin', blocked: String })
  },
  'POST /workspace/download-ticket · a path is missing or unreadable · refused before download': async t => {
    t.match(await refusalOf(() => call('POST /workspace/download-ticket', { paths: ['gone.txt'] as never })), {
      status: 404,
    })
  },
  'POST /agent with mentions · path escapes the workspace or names no file · ignored, not refused': async t => {
    const frames = await runTurn(client, 'mentions', 'say fine', {
      mentions: ['../../etc/passwd', 'gone.txt', 'docs/a.md'],
    })
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  },
  'GET /workspace/file · file does not exist · success with only path': async t => {
    t.same(await call('GET /workspace/file', { path: 'gone.txt' }), { path: 'gone.txt' })
  },
  'area deletion · people still hold the area · refused': async t => {
    await call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
    await call('POST /members', { email: 'bea@example.org', role: 'viewer', areas: ['docs'] as never })
    t.match(await refusalOf(() => call('DELETE /areas/{id}', { id: 'docs' })), { status: 409 })
    t.match((await call('GET /areas')).areas, exactly({ id: 'docs' }))
  },
})

t.test('the stream of a run sends each event of the table', async t => {
  const { run } = await call('POST /agent', { conversationId: 'told', prompt: 'say one' })
  await framesOf(client, 'told', { run }).all()
  const events = async (after?: number) => {
    const body = JSON.stringify({ conversationId: 'told', run, ...(after !== undefined && { after }) })
    const text = await (await daemon.fetch('/agent/attach', { method: 'POST', body })).text()
    return text
      .split('\n\n')
      .filter(each => each.includes('data:'))
      .map(each => ({
        event: /^event: (.*)$/m.exec(each)?.[1],
        data: JSON.parse(/^data: (.*)$/m.exec(each)![1]!) as { kind?: string; seq?: number; event?: object },
      }))
  }
  const whole = await events()
  const named = whole.map(({ event, data: { kind } }) => (event === 'message' ? `message with kind ${kind}` : event!))
  t.same(
    [...new Set(named)],
    tables.events.map(([event]) => event!).filter(event => event !== 'error'),
  )
  t.match(whole[0]!.data, { run, prompt: 'say one', startedAt: Number, seq: Number })
  const frames = (list: typeof whole) => list.filter(({ data }) => data.kind === 'frame').map(({ data }) => data)
  const positions = frames(whole).map(({ seq = 0 }) => seq)
  t.same(
    positions,
    positions.map((_, at) => positions[0]! + at),
    'positions count from the start',
  )
  t.same(frames(await events(positions[0])), frames(whole).slice(1), 'it replays what comes after a position')
  const { token, id } = await call('POST /system/control/tokens', { label: 'watch', scope: 'read' })
  const watched = await daemon.fetch('/events', { headers: { authorization: '', 'x-sandbox-control': token } })
  await call('DELETE /system/control/tokens/{id}', { id: id as never })
  t.match(await watched.text(), /^event: error\ndata: \{.*"message":/m, 'a stream that is ended says why')
})

const tooMuch = (limit: string): { [field: string]: unknown } => {
  const row = tables.limits.find(([name]) => name === limit)!
  const most = Number(/(?:to|most) (\d+)/.exec(row[2]!)?.[1])
  const [field = ''] = limit.split(' ')
  return { [field]: /attach|mention/.test(field) ? Array(most + 1).fill('a') : 'a'.repeat(most + 1) }
}
const refuses =
  (given: { [field: string]: unknown }, field: string): Check =>
  async t => {
    const { status, body } = await send({
      call: 'POST /agent',
      path: {},
      query: {},
      body: { prompt: 'say no', ...given },
    })
    t.same([status, body.errors?.some(({ path }) => path.startsWith(field))], [400, true])
  }
const ofField = (limit: string): Check => refuses(tooMuch(limit), limit.split(' ')[0]!)
const settingsCheck =
  (...keys: string[]): Check =>
  async t => {
    const before = await call('GET /settings')
    const changed = { ...before, ...Object.fromEntries(keys.map((key, at) => [key, 2 + at])) }
    await call('POST /settings', changed as never)
    t.match(await call('GET /settings'), Object.fromEntries(keys.map((key, at) => [key, 2 + at])))
    await call('POST /settings', before as never)
  }

rowsShown('every limit holds', tables.limits, {
  'messageId length · POST /agent · 1 to 128 characters': ofField('messageId length'),
  'title length · POST /agent · at most 80 characters': ofField('title length'),
  'attachments count · POST /agent · at most 20, each at least 1 character': async t => {
    await ofField('attachments count')(t)
    await refuses({ attachments: [''] }, 'attachments')(t)
  },
  'mentions count · POST /agent · at most 20': ofField('mentions count'),
  'actsAs length · POST /agent · 1 to 60 characters': ofField('actsAs length'),
  'conversationId length · conversations · 1 to 64 characters': ofField('conversationId length'),
  'startIn length · POST /agent · at most 200 characters': ofField('startIn length'),
  'worktreeBase items · POST /agent · 1 to 50': async t => {
    for (const count of [0, 51])
      await refuses({ worktreeBase: Array(count).fill({ repo: 'root', base: 'main' }) }, 'worktreeBase')(t)
  },
  'forkOf.keep · POST /agent · integer at least 0': async t => {
    for (const keep of [-1, 0.5]) await refuses({ forkOf: { conversationId: 'back', keep, files: 'now' } }, 'forkOf')(t)
  },
  'folder depth · GET /workspace/children · up to five levels': async t => {
    const deepest = async (depth: number) => {
      const { entries } = await call('GET /workspace/children', { path: 'a', depth })
      return [...JSON.stringify(entries).matchAll(/"path":"([^"]*)"/g)].map(
        ([, path = '']) => path.split('/').length - 1,
      )
    }
    t.equal(Math.max(...(await deepest(5))), 5)
    t.match(
      (await send({ call: 'GET /workspace/children', path: {}, query: { path: 'a', depth: 6 }, body: {} })).status,
      400,
    )
  },
  'file read · GET /workspace/file · a window only, chosen by offset and limit; never the whole file': async t => {
    t.match(await call('GET /workspace/file', { path: 'README.md', offset: 2, limit: 3 }), {
      content: 'wor',
      offset: 2,
      bytes: 3,
    })
    writeFileSync(join(workspace, 'large.txt'), 'x'.repeat(5 << 20))
    const { size = 0, bytes = 0 } = (await call('GET /workspace/file', { path: 'large.txt' })) as {
      size?: number
      bytes?: number
    }
    t.ok(bytes < size)
  },
  'extension pin · installing code from elsewhere · a full 40-character commit sha, not a branch': async t => {
    for (const ref of ['main', 'abc1234', 'a'.repeat(39)])
      t.match(
        (
          await send({
            call: 'POST /extensions/install/preview',
            path: {},
            query: {},
            body: { url: 'https://example.org/x.git', ref },
          })
        ).status,
        400,
      )
  },
  'mid-turn words · POST /agent · said into a running turn only where that turn takes words': async t => {
    card = await parked('quiet')
    t.equal((await call('POST /agent', { conversationId: 'quiet', prompt: 'say later' })).delivery, 'queued')
    await call('POST /agent/stop', { conversationId: 'quiet' })
  },
  'retention · settings agentRetentionDays · set per sandbox': settingsCheck('agentRetentionDays'),
  'fan-out · settings subagentsAtOnce, subagentsPerTurn, subagentDepth · configurable numbers; defaults: not shown':
    settingsCheck('subagentDepth', 'subagentsAtOnce', 'subagentsPerTurn'),
  'failures · settings automationFailureLimit · configurable number': settingsCheck('automationFailureLimit'),
})
