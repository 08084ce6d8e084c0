import { Agent, request } from 'node:http'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { daemonWith, type Support } from '../../support/daemon.js'

const post = (daemon: Support, body: string | Uint8Array, type = 'application/json') =>
  daemon.fetch('/system/control/tokens', { method: 'POST', body: body as string, headers: { 'content-type': type } })

t.test('an invalid body is refused with a message', async t => {
  const daemon = await daemonWith(t, ['system'])
  const cases: [name: string, body: string | Uint8Array, status: number, message: RegExp][] = [
    ['not JSON', '{"label":', 400, /not JSON/],
    ['a list', '[]', 400, /expected a JSON object.*a list/],
    ['null', 'null', 400, /expected a JSON object.*null/],
    ['a number', '7', 400, /expected a JSON object/],
    ['not UTF-8', new Uint8Array([0x7b, 0xff, 0x7d]), 400, /not UTF-8/],
    ['a closed key', '{"label":"a","scope":"read","__proto__":{"x":1}}', 400, /__proto__ is not allowed/],
    [
      'an escaped closed key',
      '{"label":"a","scope":"read","\\u005f_proto__":{"x":1}}',
      400,
      /__proto__ is not allowed/,
    ],
    ['a deep closed key', '{"label":"a","scope":"read","x":[{"constructor":1}]}', 400, /constructor is not allowed/],
    ['too deep', '{"label":' + '['.repeat(100_000) + ']'.repeat(100_000) + '}', 400, /deeper than 64/],
    ['not JSON, with a line break', '{"label":\n', 400, /^the body is not JSON: [^\n]*$/],
    ['a wrong type', '{"label":7,"scope":"read"}', 400, /^label: expected text.*, found 7$/],
    ['a wrong choice', '{"label":"a","scope":"all"}', 400, /^scope: expected one of .*editor.*, found "all"$/],
    ['a missing field', '{"label":"a"}', 400, /^scope: expected.*, found nothing$/],
    ['a long text', JSON.stringify({ label: 'x'.repeat(61), scope: 'read' }), 400, /^label: expected text.*at most 60/],
    ['a control character', JSON.stringify({ label: 'a\u0000b', scope: 'read' }), 400, /^label: expected/],
  ]
  for (const [name, body, status, message] of cases) {
    const answer = await post(daemon, body)
    t.equal(answer.status, status, name)
    t.match(((await answer.json()) as { message: string }).message, message, name)
  }
  t.same(await daemon.client.call('GET /system/control/tokens'), { tokens: [] }, 'nothing was changed')
})

t.test('a body of another type is 415, one over the limit 413', async t => {
  const daemon = await daemonWith(t, ['system'])
  t.equal((await post(daemon, '{}', 'text/plain')).status, 415)
  t.equal((await post(daemon, 'a=b', 'application/x-www-form-urlencoded')).status, 415)
  t.equal((await post(daemon, 'x'.repeat(10 << 20))).status, 413)
  const chunked = await new Promise<number | undefined>(resolve => {
    const req = request(
      `${daemon.url}/system/control/tokens`,
      { method: 'POST', headers: { authorization: `Bearer ${daemon.session}`, 'content-type': 'application/json' } },
      res => resolve(res.statusCode),
    )
    req.on('error', () => {})
    const part = Buffer.alloc(1 << 18, 0x20)
    for (let sent = 0; sent < 8; sent++) req.write(part)
    req.end()
  })
  t.equal(chunked, 413, 'also without a length')
})

t.test('a list in the query is parsed as a list', async t => {
  const daemon = await daemonWith(t, ['agent', 'agents'])
  const answer = await daemon.fetch('/agents/purge', { method: 'POST', body: '{"ids":7}' })
  t.equal(answer.status, 400)
  t.match((await answer.json()) as object, { message: /^ids: expected a list, .*, found 7$/ })
})

t.test('a body with a content encoding is 415, also if it is not encoded', async t => {
  const daemon = await daemonWith(t, ['system'])
  const coded = (coding: string, body: string | Uint8Array) =>
    daemon.fetch('/system/control/tokens', {
      method: 'POST',
      body: body as string,
      headers: { 'content-encoding': coding },
    })
  const good = '{"label":"a","scope":"read"}'
  for (const [coding, body] of [
    ['gzip', gzipSync(good)],
    ['gzip', good],
    ['br', good],
    ['identity, gzip', good],
    ['wonders', good],
  ] as const) {
    const answer = await coded(coding, body)
    t.equal(answer.status, 415, coding)
    t.match((await answer.json()) as object, { message: /^expected a body without content-encoding, found / })
  }
  t.same(await daemon.client.call('GET /system/control/tokens'), { tokens: [] })
  t.equal((await coded('identity', good)).status, 200)
})

t.test('nothing of a body is read before the credential is checked', async t => {
  const daemon = await daemonWith(t, ['system'])
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const req = request(
      `${daemon.url}/system/control/tokens`,
      { method: 'POST', headers: { 'content-type': 'application/json', 'content-length': 1000 } },
      res => resolve(res.statusCode),
    )
    req.on('error', reject)
    req.flushHeaders()
  })
  t.equal(status, 401)
})

t.test('a request that was received whole keeps its connection, refused or not', async t => {
  const daemon = await daemonWith(t, ['system'])
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const ask = (path: string, body: string | undefined, credential: string) =>
    new Promise<{ status: number | undefined; reused: boolean }>((resolve, reject) => {
      const headers = {
        authorization: credential,
        ...(body !== undefined && { 'content-type': 'application/json', 'content-length': body.length }),
      }
      const asked = request(daemon.url + path, { agent, method: body === undefined ? 'GET' : 'POST', headers }, res =>
        res.resume().once('end', () => resolve({ status: res.statusCode, reused: asked.reusedSocket })),
      )
      asked.once('error', reject).end(body)
    })
  const good = `Bearer ${daemon.session}`
  t.same(await ask('/info', undefined, good), { status: 200, reused: false })
  t.same(await ask('/nothing', undefined, good), { status: 404, reused: true })
  t.same(await ask('/info', undefined, 'Bearer x'), { status: 401, reused: true })
  t.same(await ask('/system/control/tokens', '{}', 'Bearer x'), { status: 401, reused: true })
  t.same(await ask('/system/control/tokens', '{', good), { status: 400, reused: true })
  t.same(await ask('/system/control/tokens', '{}', good), { status: 400, reused: true })
  t.same(await ask('/system/control/tokens', '{"label":"a","scope":"read"}', good), { status: 200, reused: true })
  t.same(await ask('/info', undefined, good), { status: 200, reused: true })
})

t.test('a body that arrives in pieces is read', async t => {
  const daemon = await daemonWith(t, ['system'])
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${daemon.session}`,
      'content-type': 'application/json',
      'content-length': 28,
    }
    const asked = request(`${daemon.url}/system/control/tokens`, { method: 'POST', headers }, res =>
      resolve(res.statusCode),
    )
    asked.once('error', reject)
    asked.write('{"label":"a",')
    // Answered after the first piece was received.
    asked.once('socket', () => void daemon.fetch('/info').then(() => asked.end('"scope":"read"}'), reject))
  })
  t.equal(status, 200)
})

t.test('a client that disconnects in the middle of its body affects no other', async t => {
  const daemon = await daemonWith(t, ['system'])
  await new Promise<void>(resolve => {
    const req = request(`${daemon.url}/system/control/tokens`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${daemon.session}`,
        'content-type': 'application/json',
        'content-length': 1000,
      },
    })
    req.on('error', () => resolve())
    req.write('{"label":', () => req.destroy(new Error('gone')))
  })
  t.equal((await daemon.fetch('/info')).status, 200)
  t.same(
    daemon.logged.filter(line => line.includes('failed')),
    [],
  )
})

t.test('a client that disconnects during its call causes no failure', async t => {
  const daemon = await daemonWith(t, ['system'])
  const { calls } = daemon.kernel
  const [reached, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  calls.answer = (_, __, { signal }) =>
    new Promise((_, reject) => {
      reached.resolve()
      signal.addEventListener('abort', () => {
        reject(signal.reason as Error)
        setImmediate(over.resolve)
      })
    })
  const gone = new AbortController()
  const asked = daemon.fetch('/system/control/tokens', { signal: gone.signal }).catch(() => undefined)
  await reached.promise
  gone.abort()
  await Promise.all([asked, over.promise])
  t.same(
    daemon.logged.filter(line => line.includes('failed')),
    [],
  )
})
