import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { ask, bearer } from '../../plugins/system/access/sign-in-support.js'
import { daemonWith, folderOf, makeWorkspace, root, spawnDaemon } from '../../support/daemon.js'
import { talkTo } from '../../support/sockets/client.js'
import { bytesOf, connected, head, rawRequest } from '../support.js'

const UPGRADE = [
  'connection: upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
]

/** The first bytes of connections without a credential, which then stay idle. */
const OPENINGS = (host: string): readonly string[] => {
  const lines = (first: string, ...more: string[]) => [first, `host: ${host}`, ...more].join('\r\n')
  return [
    '',
    lines('GET /info HTTP/1.1', 'x-a: '),
    lines('GET /health HTTP/1.1', '', ''),
    lines('GET /info HTTP/1.1', 'x-sandbox-control: sbc_wrong', '', ''),
    lines('POST /system/session HTTP/1.1', 'content-type: application/json', 'content-length: 99', '', '{"login":"'),
    lines('GET /system/terminal?session=x&ticket=x HTTP/1.1', ...UPGRADE, '', ''),
  ]
}

/** Opens connections of this machine without a credential, and leaves them idle. */
const flooding = (t: Test, url: string, openings = OPENINGS(new URL(url).host)) => {
  const { hostname, port } = new URL(url)
  const sockets: Socket[] = []
  t.teardown(() => sockets.forEach(socket => socket.destroy()))
  const one = (at: number): Promise<void> =>
    new Promise(resolve => {
      const socket = createConnection(Number(port), hostname, () => {
        socket.write(openings[at % openings.length]!)
        resolve()
      })
      sockets.push(
        socket
          .on('error', () => {})
          .on('close', () => resolve())
          .resume(),
      )
    })
  return async (connections: number): Promise<void> => {
    for (let at = 0; at < connections; at += 100) await Promise.all(Array.from({ length: 100 }, (_, n) => one(n)))
  }
}

/** A separate connection with the stream of all events. */
const eventsOf = async (t: Test, url: string, session: string) => {
  const socket = await connected(t, url)
  let said = ''
  socket.setEncoding('utf8').on('data', piece => (said += String(piece)))
  socket.write(
    head('GET', '/events', [
      ['host', new URL(url).host],
      ['authorization', `Bearer ${session}`],
    ]),
  )
  const until = async (word: RegExp): Promise<void> => {
    const ended = once(socket, 'close').then(() => Promise.reject(new Error(`the stream ended: ${said}`)))
    while (!word.test(said)) await Promise.race([once(socket, 'data'), ended])
  }
  await until(/^HTTP\/1\.1 200/)
  return { said: () => said, until, socket }
}

t.test('thousands of local connections without a credential neither lock others out nor end streams', async t => {
  const folder = folderOf(t)
  makeWorkspace(join(folder, 'workspace'))
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  const { url, session, client } = await spawnDaemon(t, where)
  const asked = head('GET', '/info', [
    ['host', new URL(url).host],
    ['authorization', `Bearer ${session}`],
  ])
  const events = await eventsOf(t, url, session)
  const flood = flooding(t, url)
  await flood(3_000)
  for (let round = 0; round < 20; round++) {
    const more = flood(200)
    const fresh = await rawRequest(url, asked)
    t.equal(fresh.status, 200, 'a new connection is served')
    const { token } = await client.call('POST /system/control/tokens', { label: `t${round}`, scope: 'read' })
    const { status } = await fetch(`${url}/info`, { headers: { 'x-sandbox-control': token } })
    t.equal(status, 200, 'also one with a token')
    await more
  }
  const before = events.said().length
  await client.call('POST /agent', { conversationId: 'c-1', prompt: 'say hello' })
  await events.until(/"c-1"/)
  t.ok(events.said().length > before)
  t.notOk(events.socket.destroyed, 'the stream is still the same')
})

t.test('the WebSocket of a session survives the flood, the oldest without a credential does not', async t => {
  const manifests = join(root, '..', 'test', 'support', 'sockets', 'manifests')
  const daemon = await daemonWith(t, ['echo'], { manifests, git: false })
  const talk = await talkTo(t, `${daemon.url}/echo/kitchen`, { headers: bearer(daemon.session) })
  const silent = await connected(t, daemon.url)
  const said = text(silent)
  await flooding(t, daemon.url, [''])(2_100)
  t.equal(await said, '', 'it was closed in favour of another, before its time was over')
  talk.say({ type: 'say', text: 'still here' })
  t.ok(await talk.until(frame => frame.text === 'still here'))
})

t.test('a thousand wrong codes write nothing, and a right one works at once', async t => {
  const daemon = await daemonWith(t, ['system'])
  const login = await daemon.auth.mintLogin()
  const { invitation } = await daemon.client.call('POST /members', { role: 'viewer' })
  const before = bytesOf(join(daemon.data, 'files'), /activity/)
  for (let round = 0; round < 40; round++) {
    const wrong = [{ login: 'x'.repeat(43) }, { invite: 'x'.repeat(43), name: 'eve' }]
    const tries = Array.from({ length: 25 }, (_, at) => ask(daemon.url, 'POST /system/session', wrong[at % 2]))
    const all = await Promise.all(tries)
    t.same([...new Set(all.map(({ status }) => status))], [401])
    t.equal((await daemon.fetch('/info')).status, 200)
  }
  t.strictSame(bytesOf(join(daemon.data, 'files'), /activity/), before, 'nothing was written')
  t.match(await ask(daemon.url, 'POST /system/session', { login }), { status: 200, body: { role: 'owner' } })
  const joined = await ask(daemon.url, 'POST /system/session', { invite: invitation?.code, name: 'Ada' })
  t.match(joined, { status: 200, body: { role: 'viewer' } })
})

t.test('local requests for the sign-in options do not count against the rate limit, forwarded ones do', async t => {
  const daemon = await daemonWith(t, ['system'])
  for (let round = 0; round < 20; round++) {
    const all = await Promise.all(Array.from({ length: 10 }, () => ask(daemon.url, 'GET /system/sign-in')))
    t.same([...new Set(all.map(({ status }) => status))], [200])
  }
  const through = { 'x-forwarded-for': '203.0.113.9' }
  const asked = Array.from({ length: 130 }, () => ask(daemon.url, 'GET /system/sign-in', undefined, through))
  const far = await Promise.all(asked)
  t.same([...new Set(far.map(({ status }) => status))].sort(), [200, 429], 'requests through a proxy are counted')
})
