import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { EndpointRow, LocalInput } from '../../../plugins/endpoints/contract.js'
import { Fitting } from '../../../plugins/endpoints/local/fit.js'
import { LocalServer, type ServerLimits } from '../../../plugins/endpoints/local/local-server.js'
import { ownProgram } from '../../../sdk/node/programs/own-programs.js'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { CapabilityStore } from '../../support/capability-store.js'
import { folderOf, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { llamaProgram } from '../../support/servers/llama-program.js'
import { framesOf } from '../../support/turns.js'
import { noWall } from '../../support/walls.js'
import { endpointsWorld } from './support.js'
import { entryOf, startFileServer, weightsOf } from './weights.js'

const METADATA = { blocks: 4, kvHeads: 2, keyLength: 16, valueLength: 16, contextLength: 8192, vocabulary: 100 }
const CAN = { skip: noWall((await wallKind()) !== 'none') }

/** A daemon that can run local models, with a server of their weights. */
const world = async (t: Test, folder = folderOf(t), store = new CapabilityStore(), data = 4096) => {
  mkdirSync(join(folder, 'w'), { recursive: true })
  const bytes = weightsOf(undefined, data)
  const files = await startFileServer(t, bytes)
  const llama = llamaProgram(folder)
  const local = join(folder, 'models.json')
  const named = entryOf(files.url, bytes, { metadata: METADATA })
  const huge = entryOf(files.url, Buffer.from('huge'), { model: 'huge', metadata: METADATA, sizeBytes: 2 ** 50 })
  writeFileSync(local, JSON.stringify([named, huge]))
  const { daemon, call } = await endpointsWorld(t, {
    store,
    workspace: join(folder, 'w'),
    data: join(folder, 'd'),
    deployment: { models: { local, server: llama.program } },
  })
  const { client } = daemon
  const save = (given: Partial<LocalInput> & { id: string }) =>
    client.call('POST /endpoints', { kind: 'local', model: 'small', ...given })
  const row = async (id: string): Promise<EndpointRow> =>
    (await client.call('GET /endpoints')).endpoints.find(each => each.id === id)!
  const reaches = async (id: string, status: string): Promise<EndpointRow> => {
    let now = await row(id)
    await until(async () => (now = await row(id)).status === status)
    return now
  }
  return { daemon, client, call, save, row, reaches, files, llama, folder, store }
}

const runs = (pid: number | undefined): boolean => pid !== undefined && existsSync(`/proc/${pid}`)

t.test('a local model is fetched, loaded and served behind the wall', CAN, async t => {
  const { daemon, client, call, save, row, reaches, files, llama, folder, store } = await world(t)
  const custom = { id: 'tiny', label: 'Tiny', model: 'custom', url: files.url, context: 1024 }

  await t.test('its states are those of its file and its server', async t => {
    llama.hold()
    const addressed = { ...custom, url: `${files.url}?ticket=once` }
    t.match(await save({ ...addressed, enabled: false }), {
      status: 'stopped',
      local: { context: 1024, url: files.url },
    })
    t.notMatch(JSON.stringify(await save({ id: 'tiny', model: 'custom', enabled: false })), 'once')
    t.equal(store.records.get('tiny')!.config.url, addressed.url, 'the stored address stays')
    files.script.holdsAfter = 2000
    t.match(await save(custom), { kind: 'local', provider: 'endpoint/tiny', status: 'downloading', protocol: 'openai' })
    await until(async () => (await row('tiny')).local?.receivedBytes === 2000)
    t.match(await row('tiny'), { local: { totalBytes: files.script.bytes.length, context: 1024, enabled: true } })
    t.match(await client.call('POST /endpoints/{id}/test', { id: 'tiny' }), { ok: false, detail: /being downloaded/ })
    t.match(await call('endpoints.target', { id: 'tiny' }), { problem: /being downloaded/, local: true })
    t.match(await save(custom), { status: 'downloading' }, 'the same again restarts nothing')
    await save({ ...custom, enabled: false })
    delete files.script.holdsAfter
    await save(custom)
    t.match(await reaches('tiny', 'loading'), { models: 0, local: { port: Number } })
    t.match(await call('endpoints.target', { id: 'tiny' }), { problem: /is loading/ })
    llama.release()
    t.match(await reaches('tiny', 'ready'), {
      models: 1,
      default: 'w',
      hasKey: false,
      local: { device: 'host', weightsBytes: files.script.bytes.length, measuredBytes: Number, log: String },
    })
    t.match(files.asked.at(-1), { range: 'bytes=2000-' }, 'the file went on from the byte where it was')
  })

  await t.test('its server is reached with a key that is in no argument, list or log, and shows no slots', async t => {
    const { local } = await row('tiny')
    const { headers, problem, models } = await call('endpoints.target', { id: 'tiny' })
    t.equal(problem, undefined)
    t.match(models, exactly({ id: 'w', contextWindow: 1024 }))
    const key = headers.authorization!.replace('Bearer ', '')
    t.equal(key.length, 64)
    const at = `http://127.0.0.1:${local!.port}`
    const asked = { method: 'POST', body: '{}' }
    t.equal((await fetch(`${at}/v1/chat/completions`, asked)).status, 401)
    t.equal((await fetch(`${at}/slots`, { headers })).status, 501)
    const written = (of: string): string =>
      readdirSync(of, { recursive: true, withFileTypes: true })
        .filter(each => each.isFile() && !each.name.endsWith('.gguf'))
        .map(each => readFileSync(join(each.parentPath, each.name), 'latin1'))
        .join('\n')
    const lists = readdirSync('/proc').filter(name => /^\d+$/.test(name))
    const lines = lists.map(pid => (existsSync(`/proc/${pid}`) ? argumentsOf(pid) : '')).join('\n')
    t.match(lines, '--alias\0w\0', 'its command line was read')
    for (const text of [lines, written(join(folder, 'd')), daemon.logged.join('\n'), JSON.stringify(await row('tiny'))])
      t.notMatch(text, key)
    t.match(written(join(folder, 'd', 'logs')), /model loaded/, 'what it prints is in its log')
  })

  await t.test('it sees neither the workspace nor the data, and the daemon declares its port as its own', async t => {
    writeFileSync(join(folder, 'w', 'private.txt'), 'private')
    const { pid, port } = (await row('tiny')).local!
    t.notOk(existsSync(`/proc/${pid}/root${join(folder, 'w', 'private.txt')}`))
    t.same(readdirSync(`/proc/${pid}/root/weights`), ['model.gguf'])
    t.notOk(existsSync(`/proc/${pid}/root${join(folder, 'd', 'store.sqlite')}`))
    const again = { id: 'again', kind: 'server', protocol: 'openai', baseUrl: `http://127.0.0.1:${port}` } as const
    t.match(await refusalOf(() => client.call('POST /endpoints', again)), { status: 422, message: /itself/ })
  })

  await t.test('it is tested, listed and chosen as other servers are', async t => {
    t.match(await client.call('POST /endpoints/{id}/test', { id: 'tiny' }), { ok: true, streaming: true, tools: 'ok' })
    t.match(await client.call('GET /endpoints/{id}/models', { id: 'tiny' }), {
      models: exactly({ id: 'w' }),
      default: 'w',
    })
    t.match(await call('endpoints.choices', {} as never), { endpoints: exactly({ id: 'tiny', ready: true }) })
    const { local } = await row('tiny')
    const cache = 32 * 2 * 2 * 1024 * 4
    t.equal(local!.estimatedBytes, local!.weightsBytes + cache + 2 * 2 ** 20, 'what its server printed counts')
  })

  await t.test('a server that is killed is served again', async t => {
    const { pid } = (await row('tiny')).local!
    process.kill(pid!, 'SIGKILL')
    t.match(await reaches('tiny', 'error'), { detail: /its server .*it is tried again after 5 s/ })
    t.match(await client.call('GET /endpoints/{id}/models', { id: 'tiny' }), { models: exactly({ id: 'w' }) })
    const next = await reaches('tiny', 'ready')
    t.not(next.local!.pid, pid)
    t.match(await call('endpoints.target', { id: 'tiny' }), { apiBase: `http://127.0.0.1:${next.local!.port}/v1` })
  })

  await t.test('switched off or removed it leaves no process', async t => {
    const { pid } = (await row('tiny')).local!
    t.match(await save({ ...custom, enabled: false }), { status: 'stopped', local: { enabled: false } })
    t.notOk(runs(pid))
    t.match(await call('endpoints.target', { id: 'tiny' }), { problem: /is stopped: start it/ })
    const event = { id: 'another', kind: 'localmodel' }
    for (const context of [512, 768, 1024]) {
      daemon.kernel.events.emit('capability.connected', event)
      await save({ ...custom, context })
      daemon.kernel.events.emit('capability.connected', event)
    }
    const { local } = await reaches('tiny', 'ready')
    t.match(local, { context: 1024 }, 'the last change counts')
    await client.call('DELETE /endpoints/{id}', { id: 'tiny' })
    t.notOk(runs(local!.pid))
    const left = readdirSync('/proc').filter(name => /^\d+$/.test(name) && argumentsOf(name).includes(llama.program))
    t.same(left, [], 'no process of the program is left')
    t.match(await client.call('GET /endpoints'), { endpoints: exactly() })
    t.match(readdirSync(join(folder, 'd', 'endpoints', 'models')), exactly(/\.gguf$/), 'its weights stay')
  })
})

t.test('two entries of one model start one transfer, and removing one does not stop it', CAN, async t => {
  const { client, save, row, reaches, files } = await world(t, undefined, undefined, 200_000)
  files.script.holdsAfter = 100_000
  await save({ id: 'one' })
  await save({ id: 'two' })
  await until(async () => (await row('two')).local?.receivedBytes === 100_000)
  await client.call('DELETE /endpoints/{id}', { id: 'one' })
  t.match(await row('two'), { status: 'downloading' })
  t.equal(files.asked.length, 1)
  await client.call('POST /endpoints/local-model/prefetch', { action: 'start' })
  t.equal(files.asked.length, 1, 'the fetch ahead of time joins it too')
  await client.call('DELETE /endpoints/{id}', { id: 'two' })
  t.match((await client.call('GET /endpoints/local-model/fit')).prefetch, { state: 'downloading' })
  await client.call('POST /endpoints/local-model/prefetch', { action: 'stop' })
  delete files.script.holdsAfter
  await save({ id: 'two' })
  t.match(await reaches('two', 'ready'), { local: { context: 16384 } })
  t.match(files.asked, exactly({ status: 200 }, { status: 206, range: 'bytes=100000-' }))
})

t.test('what cannot be served is refused, and nothing is stored', async t => {
  const { client, save, files, store, llama, folder } = await world(t)
  const page = await startFileServer(t, Buffer.from('<!doctype html>'.repeat(200)))
  const refusals: [given: Partial<LocalInput>, status: number, words: RegExp][] = [
    [{ context: 10 }, 400, /context/],
    [{ url: 'ftp://127.0.0.1/m.gguf', model: 'custom' }, 400, /url/],
    [{ model: 'none' }, 422, /expected one of small, huge or custom/],
    [{ model: 'custom' }, 422, /url: expected the address of a file/],
    [{ model: 'custom', url: 'http://ada:secret@127.0.0.1/m.gguf' }, 422, /without user/],
    [{ url: files.url }, 422, /url: expected none, found one/],
    [{ model: 'huge' }, 422, /needs \d{16} bytes with a window of 4096 tokens, and \d+ are there/],
    [{ model: 'custom', url: page.url }, 422, /GGUF/],
    [{ gpu: 'on' }, 422, /gpu: expected off/],
    [{ id: 'local-model' }, 409, /reserved/],
  ]
  for (const [given, status, words] of refusals)
    t.match(await refusalOf(() => save({ id: 'wrong', ...given })), { status, message: words })
  llama.missing()
  t.match(await refusalOf(() => save({ id: 'wrong' })), { status: 501, message: /llama-server.*install llama.cpp/ })
  t.match(await client.call('GET /endpoints'), { endpoints: exactly() })
  t.equal(store.puts, 0)
  t.notOk(existsSync(join(folder, 'd', 'endpoints', 'models')))
})

t.test('whether the program is there, and starts, is measured', async t => {
  const folder = folderOf(t)
  const { program } = llamaProgram(folder)
  const broken = join(folder, 'broken')
  writeFileSync(broken, '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  for (const [found, serverReady] of [
    [undefined, false],
    [broken, false],
    [program, true],
  ] as const) {
    const fitting = new Fitting({
      folder,
      program: async () => found,
      files: { read: async () => undefined, write: async () => {} },
      log: { warn: () => {} },
      signal: new AbortController().signal,
    })
    t.match(await fitting.now(), { serverReady })
  }
})

t.test('a model whose server never answers for long is given up, until it is saved again', async t => {
  const states: string[] = []
  const limits: ServerLimits = {
    firstWait: 1,
    longestWait: 4,
    shortLife: 60_000,
    shortLives: 3,
    loading: 5_000,
    poll: 5,
  }
  const over = Promise.withResolvers<void>()
  const crashes: string[] = []
  const server: LocalServer = new LocalServer({
    limits,
    model: { name: 'm', url: 'http://127.0.0.1:9/m.gguf' },
    fetch: async () => '/nowhere',
    need: async () => ({ context: 512, weightsBytes: 1, totalBytes: 2, budgetBytes: 3, fits: true }),
    port: async () => 9,
    command: async () => ({
      program: process.execPath,
      args: ['-e', 'console.error("out of order"); process.exit(3)'],
      env: {},
      cwd: '/',
      enforced: false,
    }),
    printed: () => {},
    changed: () => {
      const { state } = server
      states.push(state.status === 'error' ? state.detail : state.status)
      if (state.status === 'error' && state.over) over.resolve()
    },
    crashed: detail => crashes.push(detail),
    learned: () => {},
  })
  await over.promise
  t.equal(crashes.length, 3)
  t.match(states.at(-1), /ended with exit code 3: out of order 3 times in a row: save it again to start it/)
  await server.end()
  t.same(server.state, { status: 'stopped' })
})

t.test('a local model is served again after a start, and ends with its daemon', CAN, async t => {
  const folder = folderOf(t)
  const [workspace, data, local] = [join(folder, 'w'), join(folder, 'd'), join(folder, 'models.json')]
  mkdirSync(workspace)
  const bytes = weightsOf()
  const files = await startFileServer(t, bytes)
  writeFileSync(local, JSON.stringify([entryOf(files.url, bytes, { metadata: METADATA })]))
  const config = join(folder, 'deployment.json')
  writeFileSync(config, JSON.stringify({ models: { local, server: llamaProgram(folder).program } }))
  const begin = () => spawnDaemon(t, { workspace, data, args: ['--config', config] })
  const ready = async ({ client }: Awaited<ReturnType<typeof begin>>): Promise<EndpointRow> => {
    const row = async () => (await client.call('GET /endpoints')).endpoints[0]
    await until(async () => (await row())?.status === 'ready')
    return (await row())!
  }
  const first = await begin()
  const given = { id: 'tiny', kind: 'localmodel' as const, config: { model: 'small', context: 2048 } }
  const steps = []
  for await (const step of (await first.client.call('POST /capabilities', given)) as AsyncIterable<object>)
    steps.push(step)
  t.match(steps.at(-1), { kind: 'result', ok: true })
  const before = await ready(first)
  t.match(await first.client.call('GET /capabilities'), { capabilities: exactly({ id: 'tiny', kind: 'localmodel' }) })
  await first.client.call('POST /agent', { conversationId: 'c', agent: 'endpoint/tiny', prompt: 'who are you?' })
  const frames = (await framesOf(first.client, 'c').all()).map(({ event }) => event)
  t.equal(
    frames.map(frame => (frame.kind === 'delta' ? frame.text : '')).join(''),
    'I run on this machine.',
    'a turn on it gets its text',
  )
  await first.kill9()
  await until(() => !runs(before.local!.pid))
  const second = await begin()
  const after = await ready(second)
  t.match(after, { local: { context: 2048 } })
  t.equal(files.asked.length, 1, 'its weights were here')
  t.equal(await second.terminate(), 0)
  t.notOk(runs(after.local!.pid))
})

const real = await ownProgram('llama-server')
const { SANDBOX_LLAMA_MODEL: model } = process.env

t.test(
  'a real llama-server serves a model',
  { skip: !(real && model) && 'needs llama-server on the PATH and SANDBOX_LLAMA_MODEL, the path of a small GGUF file' },
  async t => {
    const folder = folderOf(t)
    mkdirSync(join(folder, 'w'))
    const files = await startFileServer(t, readFileSync(model!))
    const { daemon } = await endpointsWorld(t, { workspace: join(folder, 'w'), data: join(folder, 'd') })
    const { call } = daemon.client
    await call('POST /endpoints', { id: 'real', kind: 'local', model: 'custom', url: files.url, context: 512 })
    await until(async () => (await call('GET /endpoints')).endpoints[0]?.status === 'ready')
    t.match(await call('POST /endpoints/{id}/test', { id: 'real', tools: false }), { ok: true, streaming: true })
    const { local } = (await call('GET /endpoints')).endpoints[0]!
    t.ok(Math.abs(local!.measuredBytes! - local!.estimatedBytes) < 0.1 * local!.measuredBytes!)
  },
)

/** The arguments of a process; empty when it has ended meanwhile. */
const argumentsOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}
