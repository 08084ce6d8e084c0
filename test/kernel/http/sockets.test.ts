import { once } from 'node:events'
import { join } from 'node:path'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { describedGroups } from '../../../kernel/http/describe.js'
import type { KernelFigures } from '../../../sdk/kernel.js'
import { openapi } from '../../../openapi/document.js'
import { daemonWith, root, type Support, type SupportOptions } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { talkTo, turnedAway } from '../../support/sockets/client.js'
import { rawRequest } from '../../attack/support.js'

const manifests = join(root, '..', 'test', 'support', 'sockets', 'manifests')
const opened = (t: Test, options: SupportOptions = {}) => daemonWith(t, ['echo'], { manifests, git: false, ...options })

const bearer = ({ session }: Support) => ({ headers: { authorization: `Bearer ${session}` } })

const ticketOf = async (
  daemon: Support,
  wanted: { purpose?: 'terminal' | 'browser' | 'bundle'; name?: string } = { purpose: 'terminal' },
) => {
  const caller = daemon.auth.authenticate({ kind: 'bearer', value: daemon.session }, '127.0.0.1')
  return (
    await daemon.auth.handlers['kernel.ticket.mint'](wanted, {
      caller,
      signal: new AbortController().signal,
      trusted: true,
    })
  ).ticket
}
const count = async (daemon: Support) =>
  (await (await daemon.fetch('/echo-count')).json()) as { drops: number; open: number }

for (const apart of [[], ['echo']]) {
  const where = apart.length ? 'a group in a process of its own' : 'a group'

  t.test(`frames go both ways through a socket of ${where}, and it closes when its work ends`, async t => {
    const daemon = await opened(t, { apart })
    const talk = await talkTo(t, `${daemon.url}/echo/kitchen?times=2`, bearer(daemon))
    talk.say({ type: 'say', text: 'grüße', more: 'dropped' })
    const by = 'owner@sandbox.local'
    await talk.until(({ text }) => text === 'grüße')
    await talk.until(({ text }) => text === 'grüße')
    for (let n = 0; n < 200; n++) talk.say({ type: 'say', text: String(n) })
    await talk.until(({ text }) => text === '199')
    await talk.until(({ text }) => text === '199')
    t.same(talk.seen, [
      ...Array(2).fill({ type: 'heard', text: 'grüße', by }),
      ...Array.from({ length: 400 }, (_, n) => ({ type: 'heard', text: String(n >> 1), by })),
    ])
    talk.say({ type: 'end', how: 'done' })
    t.same(await talk.closed, { code: 1000, reason: '' })
    t.equal((await count(daemon)).open, 0)
    const caller = daemon.auth.authenticate({ kind: 'bearer', value: daemon.session }, '127.0.0.1')
    const asked = { caller, signal: new AbortController().signal, trusted: true }
    const { calls } = (await daemon.kernel.calls.answer('kernel.figures', {}, asked)) as KernelFigures
    t.match(
      calls.find(({ call }) => call === 'GET /echo/{room}'),
      { timed: 0, seconds: 0, statuses: exactly({ count: 1 }) },
      'how long it was open is no time of an answer',
    )
  })

  t.test(`a client that does not read slows down ${where}, and loses nothing`, async t => {
    const daemon = await opened(t, { apart })
    const before = (await count(daemon)).drops
    const talk = await talkTo(t, `${daemon.url}/echo/kitchen`, bearer(daemon))
    talk.ws.pause()
    talk.say({ type: 'pour', frames: 2_000, bytes: 50_000 })
    let made = 0
    // It is blocked if two checks in a row see the same count.
    for (let last = -1; made !== last || made === 0;) {
      last = made
      for (let n = 0; n < 20; n++) made = (await count(daemon)).drops - before
    }
    t.ok(made < 1_000, `${made} of 2000 frames were produced`)
    talk.ws.resume()
    await talk.until(({ at }) => at === 1_999)
    t.same(
      talk.seen.map(({ at }) => at),
      Array.from({ length: 2_000 }, (_, at) => at),
    )
  })

  t.test(`${where} is notified when a client disconnects, and an error that it throws closes the socket`, async t => {
    const daemon = await opened(t, { apart })
    const talk = await talkTo(t, `${daemon.url}/echo/kitchen`, bearer(daemon))
    talk.say({ type: 'say', text: 'a' })
    await talk.until(({ text }) => text === 'a')
    t.equal((await count(daemon)).open, 1)
    talk.ws.terminate()
    while ((await count(daemon)).open) continue
    const forbidden = await talkTo(t, `${daemon.url}/echo/kitchen`, bearer(daemon))
    forbidden.say({ type: 'end', how: 'forbidden' })
    t.same(await forbidden.closed, { code: 1008, reason: 'you may not stay' })
    const bug = await talkTo(t, `${daemon.url}/echo/kitchen`, bearer(daemon))
    bug.say({ type: 'end', how: 'bug' })
    const { code, reason } = await bug.closed
    t.equal(code, 1011)
    t.notMatch(reason, /secret detail/)
    t.match(await turnedAway(t, `${daemon.url}/echo/gone`, bearer(daemon)), {
      status: 404,
      body: { message: 'no room is named gone', reason: 'not-found' },
    })
  })
}

t.test('a request without a handshake is answered like any other, and a refusal before it is JSON', async t => {
  const daemon = await opened(t)
  const plain = await daemon.fetch('/echo/kitchen')
  t.equal(plain.status, 426)
  t.equal(plain.headers.get('upgrade'), 'websocket')
  t.match(await plain.json(), { reason: 'invalid', message: /expected an upgrade request/ })
  t.equal((await daemon.fetch('/echo/kitchen', { method: 'HEAD' })).status, 405)
  t.match(await turnedAway(t, `${daemon.url}/echo/kitchen`), { status: 401, body: { reason: 'unauthenticated' } })
  t.match(await turnedAway(t, `${daemon.url}/echo/kitchen?times=-1`, bearer(daemon)), {
    status: 400,
    body: { message: /^times: expected/ },
  })
  t.match(await turnedAway(t, `${daemon.url}/echo/kitchen?times=1&times=2`, bearer(daemon)), { status: 400 })
  t.match(await turnedAway(t, `${daemon.url}/nowhere`, bearer(daemon)), { status: 404 })
  const read = await daemon.token('read')
  t.match(await turnedAway(t, `${daemon.url}/echo/kitchen`, { headers: { 'x-sandbox-control': read.token } }), {
    status: 403,
  })
  // A call other than a socket answers, and closes.
  t.match(await turnedAway(t, `${daemon.url}/echo-count`, bearer(daemon)), {
    status: 200,
    headers: { connection: 'close' },
  })

  const raw = (...headers: string[]) =>
    rawRequest(
      daemon.url,
      [
        'GET /echo/kitchen HTTP/1.1',
        `host: ${new URL(daemon.url).host}`,
        `authorization: Bearer ${daemon.session}`,
        'connection: upgrade',
        ...headers,
        '',
        '',
      ].join('\r\n'),
    )
  const key = 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='
  for (const headers of [
    ['upgrade: websocket'],
    ['upgrade: websocket', key],
    ['upgrade: websocket', key, 'sec-websocket-version: 8'],
    ['upgrade: websocket', 'sec-websocket-key: x', 'sec-websocket-version: 13'],
    ['upgrade: websocket', key, 'sec-websocket-version: 13', 'sec-websocket-protocol: a,,b'],
  ])
    t.match(
      await raw(...headers),
      { status: 400, body: /"message":"invalid (sec-websocket-key or version|WebSocket handshake)/ },
      headers.join(', '),
    )
})

t.test('a request to upgrade to another protocol is served without it', async t => {
  const daemon = await opened(t)
  const asked = request(`${daemon.url}/echo-count`, {
    headers: { ...bearer(daemon).headers, connection: 'upgrade', upgrade: 'h2c' },
  }).end()
  const [answer] = await once(asked, 'response')
  t.equal(answer.statusCode, 200)
  answer.resume()
})

t.test('pages of another origin, another host name or an opaque origin cannot open a socket', async t => {
  const daemon = await opened(t)
  const url = `${daemon.url}/echo/kitchen`
  const from = (headers: object) => ({ headers: { ...bearer(daemon).headers, ...headers } })
  t.match(await turnedAway(t, url, from({ origin: 'https://evil.example' })), {
    status: 403,
    body: { message: /evil\.example/ },
  })
  t.match(await turnedAway(t, url, from({ origin: 'null' })), { status: 403 })
  t.match(await turnedAway(t, url, from({ 'sec-fetch-site': 'cross-site' })), { status: 403 })
  t.match(await turnedAway(t, url, from({ host: 'evil.example' })), { status: 403 })
  await talkTo(t, url, from({ origin: daemon.url }))
})

t.test('a frame that is malformed, huge or not in the contract closes the socket with 1007', async t => {
  const daemon = await opened(t)
  for (const [name, frame] of [
    ['no JSON', '{"type":'],
    ['a list', '[]'],
    ['bytes', Buffer.from('{"type":"say","text":"a"}')],
    ['an unknown type', '{"type":"shout"}'],
    ['a field that is missing', '{"type":"say"}'],
    ['a closed key', '{"type":"say","text":"a","__proto__":{}}'],
    ['deep', '['.repeat(30_000)],
    ['too long', JSON.stringify({ type: 'say', text: 'x'.repeat(65_536) })],
    ['much too long', JSON.stringify({ type: 'say', text: 'x'.repeat(10_000_000) })],
  ] as const) {
    const talk = await talkTo(t, `${daemon.url}/echo/kitchen`, bearer(daemon))
    talk.ws.send(frame)
    t.equal((await talk.closed).code, 1007, name)
  }
  while ((await count(daemon)).open) continue
  const long = await talkTo(t, `${daemon.url}/echo/kitchen`, bearer(daemon))
  long.say({ type: 'say', text: 'x'.repeat(65_000) })
  t.ok(await long.until(({ text }) => text?.length === 65_000))
  const broken = await talkTo(t, `${daemon.url}/echo/kitchen`, bearer(daemon))
  ;(broken.ws as unknown as { _socket: NodeJS.WritableStream })._socket.write(Buffer.from([0xff, 0xff, 0, 0]))
  t.equal((await broken.closed).code, 1002)
})

t.test('a socket closes with 1008 when its session ends, and with 1001 when the daemon stops', async t => {
  const daemon = await opened(t)
  const { token, id } = daemon.auth.openLocal('another')
  const other = await talkTo(t, `${daemon.url}/echo/kitchen`, { headers: { authorization: `Bearer ${token}` } })
  const own = await talkTo(t, `${daemon.url}/echo/kitchen`, bearer(daemon))
  await daemon.auth.handlers['kernel.session.revoke'](
    { id },
    { caller: { kind: 'plugin', actor: 'x', role: 'owner' }, signal: new AbortController().signal, trusted: true },
  )
  t.match(await other.closed, { code: 1008, reason: /revoked/ })
  own.say({ type: 'say', text: 'still here' })
  await own.until(({ text }) => text === 'still here')
  await daemon.stop()
  t.equal((await own.closed).code, 1001)
})

t.test('a ticket opens one socket, for its purpose, as the person who requested it', async t => {
  const daemon = await opened(t)
  const url = (ticket: string, session = 'web-1') => `${daemon.url}/echo/by-ticket?session=${session}&ticket=${ticket}`
  t.match(await turnedAway(t, `${daemon.url}/echo/by-ticket?session=web-1`), {
    status: 401,
    body: { message: /ws-ticket/ },
  })
  t.match(await turnedAway(t, url('x')), { status: 401 })

  const ticket = await ticketOf(daemon, { purpose: 'terminal', name: 'web-1' })
  t.match(await turnedAway(t, url(ticket, 'web-2')), { status: 401 }, 'not for another name')
  const looked = await fetch(url(ticket))
  t.equal(looked.status, 426)
  t.equal((await fetch(url(ticket), { method: 'HEAD' })).status, 405)
  const talk = await talkTo(t, url(ticket))
  talk.say({ type: 'say', text: 'me' })
  t.equal((await talk.until(({ text }) => text === 'me')).by, 'owner@sandbox.local')
  t.match(await turnedAway(t, url(ticket)), { status: 401 }, 'not twice')

  for (const wanted of [{ purpose: 'browser' }, { purpose: 'bundle', name: 'web-1' }] as const) {
    t.match(await turnedAway(t, url(await ticketOf(daemon, wanted))), { status: 401 }, `none for a ${wanted.purpose}`)
  }
  await talkTo(t, url(await ticketOf(daemon, {})))
  const late = await ticketOf(daemon)
  await daemon.auth.handlers['kernel.session.revoke'](
    {},
    { caller: { kind: 'plugin', actor: 'x', role: 'owner' }, signal: new AbortController().signal, trusted: true },
  )
  t.match(await turnedAway(t, url(late)), { status: 401 }, 'not when its session has ended')
  t.match(await talk.closed, { code: 1008 })
  t.notMatch(daemon.logged.join(''), new RegExp(`${ticket}|${late}`))
})

t.test('the document describes the frames of a socket', async t => {
  const daemon = await opened(t)
  const { paths } = openapi(await describedGroups(daemon.groups))
  const operation = paths!['/echo/{room}']!.get!
  t.match(operation, {
    'x-stream': 'socket',
    'x-client-frame': { oneOf: exactly({}, {}, {}) },
    'x-server-frame': { oneOf: exactly({}, {}) },
  })
  t.same(
    Object.keys(operation.responses!).filter(status => !/^[45]/.test(status)),
    ['101', 'default'],
  )
  t.ok(operation.responses!['426'])
})
