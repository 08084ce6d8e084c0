import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { measureCards } from '../../../plugins/endpoints/local/cards.js'
import { measureMemory } from '../../../plugins/endpoints/local/memory.js'
import type { Prefetch } from '../../../plugins/endpoints/local/contract.js'
import { fetchWeights } from '../../../plugins/endpoints/local/transfer.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { folderOf, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { endpointsWorld } from './support.js'
import { entryOf, startFileServer, weightsOf } from './weights.js'

const METADATA = { blocks: 4, kvHeads: 2, keyLength: 16, valueLength: 16, contextLength: 8192, vocabulary: 100 }

/** A daemon whose deployment offers these local models. */
const world = async (t: Test, models: object[], folder = folderOf(t)) => {
  mkdirSync(join(folder, 'w'), { recursive: true })
  const local = join(folder, 'models.json')
  writeFileSync(local, JSON.stringify(models))
  const { daemon } = await endpointsWorld(t, {
    workspace: join(folder, 'w'),
    data: join(folder, 'd'),
    deployment: { models: { local } },
  })
  const { call } = daemon.client
  const fetching = (action: 'start' | 'stop') => call('POST /endpoints/local-model/prefetch', { action })
  const prefetch = async () => (await call('GET /endpoints/local-model/fit')).prefetch
  const settles = async (): Promise<Prefetch> => {
    await until(async () => (await prefetch()).state !== 'downloading')
    return prefetch()
  }
  const files = () =>
    globSync('**/models/*', { cwd: join(folder, 'd') }).map(name => name.replace(/^.*\.gguf/, '.gguf'))
  return { daemon, call, fetching, prefetch, settles, files, folder }
}

t.test('the calls need their role or scope, and an invalid action is refused', async t => {
  const { daemon } = await world(t, [])
  const send = async (headers: { [name: string]: string }, action = 'stop') => {
    const fit = await fetch(`${daemon.url}/endpoints/local-model/fit`, { headers })
    const started = await fetch(`${daemon.url}/endpoints/local-model/prefetch`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ action }),
    })
    return [fit.status, started.status]
  }
  t.same(await send({}), [401, 401])
  t.same(await send({ 'x-sandbox-control': (await daemon.token('land')).token }), [200, 403])
  t.same(await send({ authorization: 'Bearer cas@example.org' }), [200, 403])
  t.same(await send({ authorization: 'Bearer mai@example.org' }), [200, 200])
  t.same(await send({ authorization: 'Bearer mai@example.org' }, 'pause'), [200, 400])
})

t.test('what fits is measured on this machine', async t => {
  const bytes = weightsOf()
  const server = await startFileServer(t, bytes)
  const { call } = await world(t, [
    entryOf(server.url, bytes),
    entryOf(server.url, Buffer.from('x'), { model: 'named', tier: 'work', metadata: METADATA, sizeBytes: 5000 }),
    entryOf(server.url, Buffer.from('y'), { model: 'huge', tier: 'work', metadata: METADATA, sizeBytes: 2 ** 50 }),
  ])
  const fit = await call('GET /endpoints/local-model/fit')
  const [, total] = /^MemTotal:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))!
  t.ok(fit.memoryBytes <= Number(total) * 1024)
  t.equal(fit.memoryCapped, fit.memoryBytes < Number(total) * 1024)
  t.equal(fit.budgetBytes, Math.floor(fit.memoryBytes - Math.max(1.5 * 2 ** 30, 0.15 * fit.memoryBytes)))
  t.match(fit.options, exactly({ model: 'small', held: false }, { model: 'named' }, { model: 'huge' }))
  t.same(
    fit.options.map(({ windows }) => windows.map(({ tokens, fits }) => [tokens, fits])),
    [
      [
        [4096, true],
        [8192, true],
        [16384, true],
      ],
      [
        [4096, true],
        [8192, true],
      ],
      [
        [4096, false],
        [8192, false],
      ],
    ],
  )
  t.same(fit.instant, { model: 'small', context: 16384 })
  t.match(fit.prefetch, { model: 'small', state: 'idle', receivedBytes: 0, totalBytes: bytes.length })
  t.match(server.asked, exactly({ range: /^bytes=0-/, status: 206 }), 'the head of the one without numbers was read')
})

t.test('a limit of this group, or of one above it, is what counts', async t => {
  const folder = folderOf(t)
  const put = (path: string, text: string) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const machine = { proc: join(folder, 'proc'), sys: join(folder, 'sys') }
  put('proc/meminfo', 'MemTotal:       16777216 kB\n')
  t.same(await measureMemory(machine), { memoryBytes: 2 ** 34, memoryCapped: false })
  put('proc/self/cgroup', '0::/a.slice/b.scope\n')
  put('sys/fs/cgroup/a.slice/b.scope/memory.max', 'max\n')
  t.match(await measureMemory(machine), { memoryCapped: false })
  put('sys/fs/cgroup/a.slice/memory.max', `${2 ** 32}\n`)
  t.same(await measureMemory(machine), { memoryBytes: 2 ** 32, memoryCapped: true })
  put('proc/self/cgroup', '7:cpu,memory:/old\n')
  put('sys/fs/cgroup/memory/old/memory.limit_in_bytes', `${2n ** 63n - 4096n}\n`)
  t.match(await measureMemory(machine), { memoryCapped: false })
  put('sys/fs/cgroup/memory/memory.limit_in_bytes', `${2 ** 31}\n`)
  t.same(await measureMemory(machine), { memoryBytes: 2 ** 31, memoryCapped: true })
})

t.test('cards count as their program says, if the server of models can use them', async t => {
  const sys = folderOf(t)
  const { signal } = new AbortController()
  const saying = (name: string, text: string) => {
    writeFileSync(
      join(sys, name),
      `#!/bin/sh\nprintf '%s\\n' "$@" > ${sys}/${name}.asked\ncat <<'END'\n${text}\nEND\n`,
      {
        mode: 0o755,
      },
    )
    return join(sys, name)
  }
  const none = { cards: 0, gpuMemoryBytes: 0, gpuFreeBytes: 0 }
  t.same(await measureCards({ sys, meter: undefined, server: undefined }, signal), { ...none, gpu: 'absent' })
  mkdirSync(join(sys, 'bus/pci/devices/0'), { recursive: true })
  writeFileSync(join(sys, 'bus/pci/devices/0/class'), '0x030000\n')
  t.same(await measureCards({ sys, meter: undefined, server: undefined }, signal), { ...none, gpu: 'unsupported' })
  const meter = saying('meter', '24576, 20000\n8192, 8000')
  const plain = saying('plain', 'Available devices:')
  t.same(await measureCards({ sys, meter, server: plain }, signal), { ...none, gpu: 'unsupported' })
  t.match(readFileSync(`${meter}.asked`, 'utf8'), 'memory.total,memory.free')
  const server = saying('server', 'Available devices:\n  CUDA0: a card (24576 MiB, 20000 MiB free)')
  t.same(await measureCards({ sys, meter, server }, signal), {
    ...{ gpu: 'granted', cards: 2 },
    ...{ gpuMemoryBytes: 32768 * 2 ** 20, gpuFreeBytes: 28000 * 2 ** 20 },
  })
})

t.test('without a local model that can be loaded nothing is fetched, and the numbers are said', async t => {
  const none = await world(t, [])
  t.match(await refusalOf(() => none.fetching('start')), { status: 422, message: /models\.local/ })
  t.match(await none.fetching('stop'), { state: 'idle', model: '' })
})

t.test('a model that is too large is refused with both numbers', async t => {
  const { fetching } = await world(t, [
    entryOf('http://127.0.0.1:9/w', Buffer.from('y'), { metadata: METADATA, sizeBytes: 2 ** 50 }),
  ])
  t.match(await refusalOf(() => fetching('start')), { status: 422, message: /needs \d{16} bytes, and \d+ are there/ })
})

t.test('a model is fetched, checked, and then held', async t => {
  const bytes = weightsOf()
  const server = await startFileServer(t, bytes)
  const { fetching, settles, files, call } = await world(t, [entryOf(server.url, bytes, { metadata: METADATA })])
  t.match(await fetching('start'), { model: 'small', totalBytes: bytes.length })
  t.match(await settles(), { state: 'held', receivedBytes: bytes.length })
  t.same(files(), ['.gguf'])
  for (const action of ['start', 'stop'] as const) t.match(await fetching(action), { state: 'held' })
  t.equal(server.asked.length, 1)
  t.match(await call('GET /endpoints/local-model/fit'), { prefetch: { state: 'held' } })
})

t.test('a fetch that was stopped goes on from the byte where it was', async t => {
  const bytes = weightsOf(undefined, 200_000)
  const server = await startFileServer(t, bytes)
  server.script.holdsAfter = 100_000
  const { fetching, prefetch, settles, files } = await world(t, [entryOf(server.url, bytes, { metadata: METADATA })])
  await fetching('start')
  await until(async () => (await prefetch()).receivedBytes === 100_000)
  t.match(await fetching('start'), { state: 'downloading' }, 'a second start changes nothing')
  t.match(await fetching('stop'), { state: 'idle', receivedBytes: 100_000 })
  t.match(await fetching('stop'), { state: 'idle' })
  t.same(files().sort(), ['.gguf.part', '.gguf.part.json'])
  delete server.script.holdsAfter
  await fetching('start')
  t.match(await settles(), { state: 'held' })
  t.match(server.asked, exactly({ status: 200 }, { status: 206, range: 'bytes=100000-', ifRange: '"one"' }))
})

t.test('a file that changed, and a server without ranges, begin anew', async t => {
  for (const whole of [false, true]) {
    await t.test(whole ? 'without ranges' : 'changed', async t => {
      const bytes = weightsOf(undefined, 200_000)
      const server = await startFileServer(t, bytes)
      server.script.holdsAfter = 100_000
      const { fetching, prefetch, settles } = await world(t, [entryOf(server.url, bytes, { metadata: METADATA })])
      await fetching('start')
      await until(async () => (await prefetch()).receivedBytes === 100_000)
      await fetching('stop')
      delete server.script.holdsAfter
      if (whole) server.script.whole = true
      else server.script.etag = '"two"'
      await fetching('start')
      t.match(await settles(), { state: 'held' })
      t.same(
        server.asked.map(({ status }) => status),
        [200, 200],
      )
    })
  }
})

t.test('a broken connection is resumed automatically, also when the server lies about ranges', async t => {
  const bytes = weightsOf(undefined, 300_000)
  const server = await startFileServer(t, bytes)
  server.script.breaksAfter = 120_000
  const { fetching, settles, prefetch } = await world(t, [entryOf(server.url, bytes, { metadata: METADATA })])
  await fetching('start')
  await until(() => server.asked.length === 2)
  server.script.lies = true
  await until(() => server.asked.length === 3)
  server.script.lies = false
  delete server.script.breaksAfter
  t.match(await settles(), { state: 'held' })
  t.equal((await prefetch()).detail, undefined)
})

t.test('a file with another checksum, or that is no model, fails and leaves nothing', async t => {
  const folder = folderOf(t)
  const bytes = weightsOf()
  const page = Buffer.from('<!doctype html>'.repeat(200))
  for (const [served, entry, words] of [
    [bytes, { sha256: 'a'.repeat(64) }, /expected the checksum a{64}, found [0-9a-f]{64}/],
    [page, {}, /no model in the format GGUF/],
    [Buffer.concat([bytes, bytes]), { sizeBytes: bytes.length }, /expected a file of/],
  ] as const) {
    const server = await startFileServer(t, served)
    const { fetching, settles, files, daemon } = await world(
      t,
      [entryOf(server.url, served, { metadata: METADATA, ...entry })],
      folder,
    )
    await fetching('start')
    t.match(await settles(), { state: 'failed', receivedBytes: 0, detail: words })
    t.same(files(), [])
    await daemon.stop()
  }
})

t.test('a disk without room is a failure that names the bytes', async t => {
  const folder = folderOf(t)
  const fetched = fetchWeights({
    url: 'http://127.0.0.1:9/w',
    sha256: 'a'.repeat(64),
    size: 2 ** 50,
    path: join(folder, 'models', 'w.gguf'),
    signal: new AbortController().signal,
    received: () => {},
  })
  await t.rejects(fetched, { message: /^expected 11259\d+ bytes of free disk space, found \d+/, again: false })
  t.same(readdirSync(join(folder, 'models')), [])
})

t.test('a fetch goes on by itself after the daemon was killed', async t => {
  const folder = folderOf(t)
  const [workspace, data, local] = [join(folder, 'w'), join(folder, 'd'), join(folder, 'models.json')]
  mkdirSync(workspace)
  const bytes = weightsOf(undefined, 200_000)
  const server = await startFileServer(t, bytes)
  server.script.holdsAfter = 100_000
  const entry = entryOf(server.url, bytes, { metadata: METADATA })
  writeFileSync(local, JSON.stringify([entry]))
  const config = join(folder, 'deployment.json')
  writeFileSync(config, JSON.stringify({ models: { local } }))
  const first = await spawnDaemon(t, { workspace, data, args: ['--config', config] })
  await first.client.call('POST /endpoints/local-model/prefetch', { action: 'start' })
  await until(
    async () => (await first.client.call('GET /endpoints/local-model/fit')).prefetch.receivedBytes === 100_000,
  )
  await first.kill9()
  delete server.script.holdsAfter
  await spawnDaemon(t, { workspace, data, args: ['--config', config] })
  const path = join(data, 'endpoints', 'models', `${entry.sha256}.gguf`)
  await until(() => existsSync(path))
  t.match(server.asked.at(-1), { status: 206, range: /^bytes=[1-9]\d*-$/ })
  t.equal(createHash('sha256').update(readFileSync(path)).digest('hex'), entry.sha256)
})
