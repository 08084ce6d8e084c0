import {
  appendFileSync,
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { logs, type LogLine } from '../../../plugins/logs/contract.js'
import { Catalogue } from '../../../plugins/logs/catalogue.js'
import { sweepLogs } from '../../../plugins/logs/upkeep.js'
import { older, RotatingFile } from '../../../sdk/node/logs/rotating-file.js'
import { readEvents } from '../../../sdk/events.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { openEvents } from '../system/stream/events-support.js'
import { tookLess } from '../../support/in-time.js'

const CALLS = ['/logs', '/logs/file?name=daemon.log', '/logs/follow?name=daemon.log']

const withLogs = async (
  t: Test,
  files: { readonly [name: string]: string } = {},
): Promise<Support & { folder: string }> => {
  const daemon = await daemonWith(t, ['logs'])
  const folder = join(daemon.data, 'logs')
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return { ...daemon, folder }
}
const numbered = (count: number, from = 0): string =>
  Array.from({ length: count }, (_, n) => `line ${n + from}\n`).join('')
const read = (daemon: Support, query: object) =>
  daemon.client.call('GET /logs/file', { name: 'daemon.log', ...query } as never)

const fits = logs.reply()

/** Follows a log; every event is compared with the contract. */
const following = async (
  t: Test,
  { url, session }: Support,
  query: string,
  headers: { [name: string]: string } = {},
) => {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const response = await fetch(`${url}/logs/follow?${query}`, {
    headers: { authorization: `Bearer ${session}`, ...headers },
    signal: stop.signal,
  })
  const events = readEvents(response.body!)
  const next = async () => {
    const { event, data, id } = (await events.next()).value as { event: string; data: string; id: string }
    const value = JSON.parse(data)
    if (event === 'message' && !fits({ call: 'GET /logs/follow', output: value }).success)
      throw new Error(`${data} does not fit`)
    return { event, value: value as LogLine & { kind?: string; lines?: number; reason?: string }, id }
  }
  const texts = async (count: number): Promise<string[]> => {
    const found: string[] = []
    while (found.length < count) found.push((await next()).value.text)
    return found
  }
  return { status: response.status, next, texts, stop: () => stop.abort() }
}

t.test('only a maintainer reads logs: not without a credential, and with no token', async t => {
  const daemon = await withLogs(t, { 'daemon.log': 'x\n' })
  for (const path of CALLS) t.equal((await fetch(daemon.url + path)).status, 401, path)
  for (const scope of ['read', 'drive', 'land', 'editor'] as const) {
    const { token } = await daemon.token(scope)
    for (const path of CALLS)
      t.equal(
        (await fetch(daemon.url + path, { headers: { 'x-sandbox-control': token } })).status,
        403,
        `${scope} ${path}`,
      )
  }
})

t.test('what does not fit, and a name that leads elsewhere, is refused and gives not a byte', async t => {
  const daemon = await withLogs(t, {
    'daemon.log': 'x\n',
    'crash/a.log': 'y\n',
    '.running': '{}',
    'elsewhere/z.log': 'z\n',
  })
  writeFileSync(join(daemon.data, 'secret'), 'hidden')
  symlinkSync(join(daemon.data, 'secret'), join(daemon.folder, 'crash', 'link.log'))
  symlinkSync('daemon.log', join(daemon.folder, 'daemon.log.1'))
  symlinkSync(daemon.data, join(daemon.folder, 'terminals'))
  mkdirSync(join(daemon.folder, 'runs', 'folder'), { recursive: true })
  for (const name of [
    '../secret',
    '/etc/passwd',
    'crash/../../secret',
    'crash//a.log',
    './daemon.log',
    'crash\\a.log',
    'crash/a.log/',
    'a\0b',
  ]) {
    for (const call of ['file', 'follow']) {
      const response = await daemon.fetch(`/logs/${call}?name=${encodeURIComponent(name)}`)
      t.equal(response.status, 400, `${call} ${name}`)
      t.notMatch(await response.text(), /hidden|root:/)
    }
  }
  for (const name of [
    'none.log',
    'crash/none.log',
    'crash/link.log',
    'daemon.log.1',
    'terminals/secret',
    'runs/folder',
    'crash',
    '.running',
    'elsewhere/z.log',
    'crash/a.log/x',
  ]) {
    for (const call of ['file', 'follow']) {
      const response = await daemon.fetch(`/logs/${call}?name=${encodeURIComponent(name)}`)
      t.equal(response.status, 404, `${call} ${name}`)
      t.notMatch(await response.text(), /hidden/)
    }
  }
  for (const query of ['bytes=0', 'bytes=1048577', 'offset=-1', 'find=', 'level=loud', `find=${'x'.repeat(201)}`]) {
    t.equal((await daemon.fetch(`/logs/file?name=daemon.log&${query}`)).status, 400, query)
  }
  t.match(
    (await daemon.client.call('GET /logs')).files.map(({ name }) => name).sort(),
    exactly('crash/a.log', 'daemon.log'),
  )
})

t.test('every log is listed with its kind, the last changed first', async t => {
  const daemon = await withLogs(t)
  t.same(await daemon.client.call('GET /logs'), { files: [] })
  const names = [
    'daemon.log',
    'daemon.log.1',
    'plugins/agent.log',
    'terminals/main.log',
    'runs/c-1/3.log',
    'crash/2026.log',
  ]
  names.forEach((name, age) => {
    mkdirSync(join(daemon.folder, name, '..'), { recursive: true })
    writeFileSync(join(daemon.folder, name), 'x'.repeat(age))
    utimesSync(join(daemon.folder, name), 1e9 - age, 1e9 - age)
  })
  const { files } = await daemon.client.call('GET /logs')
  t.same(
    files.map(({ name, kind, live, sizeBytes, conversationId }) => [name, kind, live, sizeBytes, conversationId]),
    [
      ['daemon.log', 'daemon', true, 0, undefined],
      ['daemon.log.1', 'daemon', false, 1, undefined],
      ['plugins/agent.log', 'plugin', true, 2, undefined],
      ['terminals/main.log', 'terminal', false, 3, undefined],
      ['runs/c-1/3.log', 'run', false, 4, 'c-1'],
      ['crash/2026.log', 'crash', false, 5, undefined],
    ],
  )
  t.same(
    (await daemon.client.call('GET /logs', { kind: 'crash' })).files.map(({ name }) => name),
    ['crash/2026.log'],
  )
  t.same(
    (await daemon.client.call('GET /logs', { query: 'daemon' })).files.map(({ name }) => name),
    ['daemon.log', 'daemon.log.1'],
  )
})

t.test('a window holds whole lines: the end of a log, or from an offset on', async t => {
  const daemon = await withLogs(t, { 'daemon.log': numbered(1000), 'crash/empty.log': '' })
  const size = numbered(1000).length
  t.match(await read(daemon, { bytes: 25 }), {
    text: 'line 998\nline 999\n',
    offset: size - 18,
    sizeBytes: size,
    truncated: false,
    next: undefined,
  })
  t.match(await read(daemon, { bytes: 25, offset: 0 }), {
    text: 'line 0\nline 1\nline 2\n',
    offset: 0,
    next: 21,
    truncated: false,
  })
  t.match(
    await read(daemon, { bytes: 25, offset: 22 }),
    { text: 'line 4\nline 5\nline 6\n', offset: 28, next: 49 },
    'from within a line the next one',
  )
  t.match(await read(daemon, { offset: size + 10 }), { text: '', offset: size, next: undefined })
  t.match(await read(daemon, { name: 'crash/empty.log' }), { text: '', offset: 0, truncated: false })
  let all = ''
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const window = await read(daemon, { offset, bytes: 777 })
    all += window.text
    offset = window.next
  }
  t.equal(all, numbered(1000), 'pages make up the log')
})

t.test('a line longer than the window is cut and marked, and invalid UTF-8 is shown as such', async t => {
  const daemon = await withLogs(t, { 'daemon.log': `${'x'.repeat(500)}\nshort\n`, 'crash/one.log': 'y'.repeat(500) })
  const cut = await read(daemon, { offset: 0, bytes: 100 })
  t.match(cut, { text: `${'x'.repeat(100)}… (cut)\n`, truncated: true, next: 501 })
  t.match(await read(daemon, { offset: cut.next, bytes: 100 }), { text: 'short\n' })
  t.match(await read(daemon, { name: 'crash/one.log', bytes: 100 }), { text: `…${'y'.repeat(100)}`, truncated: true })
  appendFileSync(join(daemon.folder, 'daemon.log'), Buffer.from([0xff, 0xfe, 0x0a]))
  t.match(await read(daemon, { bytes: 3 }), { text: '\ufffd\ufffd\n' })
})

t.test('find and level give only lines that fit, and say where to go on', async t => {
  const line = (level: string, n: number) => `{"level":"${level}","at":${n + 1},"pid":1,"message":"row ${n}"}\n`
  const levels = ['debug', 'info', 'warn', 'error', 'fatal']
  const daemon = await withLogs(t, {
    'daemon.log': `plain row 3\n${Array.from({ length: 500 }, (_, n) => line(levels[n % 5]!, n)).join('')}`,
  })
  t.match(await read(daemon, { find: 'row 3"' }), { text: line('error', 3), next: undefined })
  const grave = await read(daemon, { level: 'error', bytes: 1048576 })
  t.equal(grave.text.trimEnd().split('\n').length, 200, 'at least as grave')
  t.notMatch(grave.text, 'plain')
  t.match(await read(daemon, { find: 'no such words' }), { text: '' })
  let found = ''
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const window = await read(daemon, { offset, bytes: 300, level: 'warn', find: '7"' })
    found += window.text
    offset = window.next
  }
  t.equal(
    found,
    Array.from({ length: 500 }, (_, n) => n)
      .filter(n => n % 10 === 7)
      .map(n => line(levels[n % 5]!, n))
      .join(''),
  )
})

t.test('a window from the middle of 300 MiB takes less than 200 ms, and no memory to speak of', async t => {
  const daemon = await withLogs(t, { 'daemon.log': '' })
  const file = openSync(join(daemon.folder, 'daemon.log'), 'r+')
  ftruncateSync(file, 300 * 1024 * 1024)
  writeSync(file, `\n${numbered(20_000)}`, 150 * 1024 * 1024)
  closeSync(file)
  await read(daemon, { offset: 150 * 1024 * 1024 + 1, bytes: 1000 })
  const before = process.memoryUsage().rss
  const began = performance.now()
  const window = await read(daemon, { offset: 150 * 1024 * 1024 + 1, bytes: 65_536 })
  const took = performance.now() - began
  t.match(window.text, /^line 0\nline 1\n/)
  t.ok(tookLess(took, 200), `${Math.round(took)} ms`)
  t.ok(process.memoryUsage().rss - before < 32 * 1024 * 1024)
})

t.test('a log is followed from its last 100 lines on, by id and by level', async t => {
  const daemon = await withLogs(t, { 'daemon.log': numbered(250) })
  const path = join(daemon.folder, 'daemon.log')
  const first = await following(t, daemon, 'name=daemon.log')
  t.same(await first.texts(100), numbered(100, 150).trimEnd().split('\n'))
  appendFileSync(path, '{"level":"error","at":17,"message":"now"}\nhalf of a')
  const { value, id } = await first.next()
  t.match(value, { text: /now/, level: 'error', at: 17, offset: numbered(250).length })
  t.equal(Number(id), value.offset + value.text.length + 1)
  appendFileSync(
    path,
    ' line\n{"level":"debug","at":18,"message":"little"}\n{"level":"warn","at":19,"message":"much"}\n',
  )
  t.equal((await first.next()).value.text, 'half of a line', 'once it is whole')
  first.stop()
  const again = await following(t, daemon, 'name=daemon.log', { 'last-event-id': id })
  t.equal((await again.next()).value.text, 'half of a line')
  const grave = await following(t, daemon, 'name=daemon.log&from=0&level=warn')
  t.same(await grave.texts(2), [
    '{"level":"error","at":17,"message":"now"}',
    '{"level":"warn","at":19,"message":"much"}',
  ])
  const end = await following(t, daemon, `name=daemon.log&from=99999999`)
  t.match((await end.next()).value, { kind: 'rotated' }, 'what was seen last is gone')
})

t.test('a returning reader continues at its position, also when the log was renamed', async t => {
  const daemon = await withLogs(t, { 'daemon.log': numbered(100) })
  const path = join(daemon.folder, 'daemon.log')
  const rotate = (next: string) => {
    rmSync(`${path}.2`, { force: true })
    for (const age of [1, 0]) if (existsSync(older(path, age))) renameSync(older(path, age), older(path, age + 1))
    writeFileSync(path, next)
  }
  const first = await following(t, daemon, 'name=daemon.log&from=0')
  let last = ''
  for (let n = 0; n < 50; n++) last = (await first.next()).id
  first.stop()
  rotate(numbered(200, 100))
  // The new file is longer, and has a line that ends at the same place.
  t.equal(readFileSync(path)[Number(last) - 1] === 10, false)
  const again = await following(t, daemon, 'name=daemon.log&from=0', { 'last-event-id': last })
  t.same(await again.texts(50), numbered(50, 50).trimEnd().split('\n'), 'the rest of the file that was moved away')
  t.match((await again.next()).value, { kind: 'rotated' })
  t.same(await again.texts(200), numbered(200, 100).trimEnd().split('\n'))
  again.stop()

  writeFileSync(path, `${'x'.repeat(Number(last) - 1)}\nsame place\n`)
  const other = await following(t, daemon, 'name=daemon.log', { 'last-event-id': last })
  t.equal((await other.next()).value.text, 'same place', 'it is the file that was read last')
  other.stop()
  for (let n = 0; n < 3; n++) rotate(`${'x'.repeat(Number(last) - 1)}\nafter ${n}\n`)
  const late = await following(t, daemon, 'name=daemon.log', { 'last-event-id': last })
  t.match((await late.next()).value, { kind: 'rotated' }, 'what was read last is gone')
  await late.next()
  t.equal((await late.next()).value.text, 'after 0', 'the oldest there is comes next')
  late.stop()
})

t.test('after a restart the file is recognized by where its lines end', async t => {
  const daemon = await withLogs(t, { 'daemon.log': `${'x'.repeat(500)}\n`, 'daemon.log.1': numbered(20) })
  const stranger = await following(t, daemon, 'name=daemon.log', { 'last-event-id': String(numbered(5).length) })
  t.same(await stranger.texts(15), numbered(15, 5).trimEnd().split('\n'))
  t.match((await stranger.next()).value, { kind: 'rotated' })
  t.equal((await stranger.next()).value.text.length, 500)
  const nowhere = await following(t, daemon, 'name=daemon.log', { 'last-event-id': '123456' })
  t.match((await nowhere.next()).value, { kind: 'rotated' })
  t.equal((await nowhere.next()).value.text.length, 500)
  const odd = await following(t, daemon, 'name=daemon.log', { 'last-event-id': 'r-1:7' })
  t.equal((await odd.next()).value.text.length, 500, 'an id of something else counts as none')
})

t.test('a person follows eight logs at once', async t => {
  const daemon = await withLogs(t, { 'daemon.log': numbered(1) })
  const open = await Promise.all(Array.from({ length: 8 }, () => following(t, daemon, 'name=daemon.log')))
  for (const one of open) await one.next()
  t.equal((await following(t, daemon, 'name=daemon.log')).status, 429)
  open[0]!.stop()
  let status = 429
  while (status === 429) ({ status } = await following(t, daemon, 'name=daemon.log'))
  t.equal(status, 200, 'one that left makes room')
})

t.test('rotation under load loses no line but those it counts, and a log that goes ends its stream', async t => {
  const daemon = await withLogs(t)
  const path = join(daemon.folder, 'plugins', 'busy.log')
  const file = new RotatingFile(path, { most: 20_000 })
  file.write(numbered(1))
  await file.flush()
  const follower = await following(t, daemon, 'name=plugins%2Fbusy.log&from=0')
  const lines = 6000
  let [sent, skipped, rotated, last] = [0, 0, 0, -1]
  const reading = (async () => {
    while (sent + skipped < lines) {
      const { value } = await follower.next()
      if (value.kind === 'rotated') rotated += 1
      else if (value.kind === 'skipped') skipped += value.lines!
      else {
        const number = Number(value.text.slice(5))
        if (number <= last) throw new Error(`${number} came after ${last}`)
        last = number
        sent += 1
      }
    }
  })()
  for (let n = 1; n < lines; n++) {
    file.write(numbered(1, n))
    if (n % 40 === 0) {
      await file.flush()
      await new Promise(resolve => setImmediate(resolve))
    }
  }
  await file.flush()
  await reading
  t.equal(sent + skipped, lines)
  t.ok(rotated >= 2, `${rotated} rotations`)
  await file.close()
  for (const name of [path, `${path}.1`, `${path}.2`]) rmSync(name)
  t.match(await follower.next(), { event: 'done', value: { reason: 'removed' } })
})

t.test('old logs go: idle ones, the oldest of too many and of too much, and none that is being written', async t => {
  const daemon = await withLogs(t, { 'daemon.log': 'x'.repeat(100), 'terminals/old.log': 'x' })
  const now = Date.now()
  for (let n = 0; n < 10; n++) {
    mkdirSync(join(daemon.folder, 'crash'), { recursive: true })
    writeFileSync(join(daemon.folder, 'crash', `${n}.log`), 'x'.repeat(10))
    utimesSync(join(daemon.folder, 'crash', `${n}.log`), now / 1000 - n, now / 1000 - n)
  }
  utimesSync(join(daemon.folder, 'terminals/old.log'), 1e9, 1e9)
  utimesSync(join(daemon.folder, 'daemon.log'), 1e9, 1e9)
  const catalogue = new Catalogue(daemon.folder)
  const names = async () => (await catalogue.list()).map(({ name }) => name)
  await sweepLogs(catalogue, now)
  t.equal((await names()).length, 11, 'what was idle is gone')
  await sweepLogs(catalogue, now, { files: 6, bytes: 1e6, idle: 1e12 })
  t.same(await names(), ['crash/0.log', 'crash/1.log', 'crash/2.log', 'crash/3.log', 'crash/4.log', 'daemon.log'])
  await sweepLogs(catalogue, now, { files: 6, bytes: 125, idle: 1e12 })
  t.same(await names(), ['crash/0.log', 'crash/1.log', 'daemon.log'])
})

t.test('a new log is published within ten seconds', async t => {
  const daemon = await daemonWith(t, ['logs', 'system'])
  const events = await openEvents(t, daemon)
  await events.until('hello')
  mkdirSync(join(daemon.data, 'logs', 'crash'), { recursive: true })
  // Those that are there when the daemon first looks are not new.
  let written = 0
  const writes = setInterval(() => {
    writeFileSync(join(daemon.data, 'logs', 'crash', `new-${written++}.log`), 'x\n')
  }, 200)
  t.teardown(() => clearInterval(writes))
  t.match(await events.until('runtimeChanged', ({ domains }) => domains.includes('logs')), { kind: 'runtimeChanged' })
})
