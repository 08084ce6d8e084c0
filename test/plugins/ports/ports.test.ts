import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket } from 'ws'
import type { PortEntry } from '../../../plugins/ports/contract.js'
import type { ListeningSocket } from '../../../sdk/node/network/socket-table.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'
import { shownServers, SHOWN_SERVER } from '../../support/servers/shown-servers.js'
import { until } from '../workspace/projects-support.js'
import { show, socketAt } from './support.js'
import { meantInClear } from '../../support/secret-search.js'

const people = new People()
people.add('owner@sandbox.local', 'owner')
people.add('vic@example.org', 'viewer')
people.add('col@example.org', 'collaborator')
people.add('ann@example.org', 'viewer', ['docs'])
/** Servers in networks of conversations, as group agent tells of them: their sockets are at relays. */
const inNetworks = new Map<string, { sockets: ListeningSocket[]; path: string }>()

const daemon = await daemonWith(t, ['ports', 'system', 'activity', 'areas'], {
  files: { 'docs/a.md': 'a', 'web/a.ts': 'a' },
  fakes: {
    'secrets.values': () => ({ values: [{ name: 'WORD', value: 'zirkonia-4711' }], revision: 1 }),
    'networks.listening': () => ({
      networks: [...inNetworks].map(([conversationId, { sockets }]) => ({ conversationId, sockets })),
    }),
    'networks.relay': ({ conversationId }) => ({ path: inNetworks.get(conversationId)!.path }),
  },
})
people.admit(daemon)
const { client, workspace, data, url } = daemon
const servers = shownServers(t, workspace)
const list = async () => (await client.call('GET /ports')).ports
/** A row of a scan after now: callers share one for a second. */
const rowOf = async (port: number, fits: (row: PortEntry | undefined) => boolean = row => row !== undefined) =>
  (
    await until(`the row of port ${port}`, async () => {
      const row = (await list()).find(each => each.port === port)
      return fits(row) && { row }
    })
  ).row
const forward = (port: number, conversationId?: string) =>
  client.call('POST /ports/forward', { port, ...(conversationId !== undefined && { conversationId }) })
const unforward = (port: number) => client.call('POST /ports/unforward', { port })
const refused = (asked: Promise<unknown>) => refusalOf(() => asked)
const activity = async (type: string) =>
  (await client.call('GET /activity', { types: [type] } as never)).events.filter(event => event.type === type)

t.test('who may list and forward is what the manifest says, and bad input is refused', async t => {
  const port = await servers.ask({ listen: '127.0.0.1' })
  t.equal((await fetch(`${url}/ports`)).status, 401)
  for (const scope of ['read', 'drive', 'land'] as const) {
    const { client: token } = await daemon.token(scope)
    t.ok((await token.call('GET /ports')).ports.length > 0, scope)
    t.match(await refused(token.call('POST /ports/forward', { port })), { status: 403, message: /token/ })
    t.equal((await refused(token.call('POST /ports/unforward', { port }))).status, 403)
  }
  t.equal((await refused((await daemon.token('editor')).client.call('GET /ports'))).status, 403)
  t.equal((await refused(clientOf(daemon, 'col@example.org').call('POST /ports/forward', { port }))).status, 403)
  const posts = (body: string) => daemon.fetch('/ports/forward', { method: 'POST', body })
  for (const body of [
    '{"port":0}',
    '{"port":"80; rm"}',
    '{"port":65536}',
    '{}',
    `{"port":${port},"conversationId":"../x"}`,
  ])
    t.equal((await posts(body)).status, 400, body)
  t.equal((await daemon.fetch('/ports/unforward', { method: 'POST', body: '{"port":0}' })).status, 400)
})

t.test('the own port of the sandbox, a silent one and one that loopback does not reach are refused', async t => {
  const own = Number(new URL(url).port)
  t.match(await refused(forward(own)), { status: 422, message: `port ${own} belongs to the sandbox itself` })
  const closed = await servers.ask({ listen: '127.0.0.1' })
  await servers.ask({ close: closed })
  t.match(await refused(forward(closed)), { status: 404, message: `nothing is listening on port ${closed}` })
  t.match(await refused(forward(closed, 'none')), { status: 404, message: /conversation none/ })
  const alias = await servers.ask({ listen: '127.0.0.2' })
  t.match(await rowOf(alias), { forwardable: false, forwarded: false })
  t.match(await refused(forward(alias)), { status: 422, message: /loopback/ })
  t.same(await unforward(closed), { ok: true })
  const shown = await servers.ask({ listen: '127.0.0.1' })
  const preview = Number(new URL((await forward(shown)).previewUrl).port)
  t.equal((await refused(forward(preview))).status, 422)
  await unforward(shown)
  t.notOk((await list()).some(({ port }) => port === own || port === preview))
})

t.test('servers on each loopback address, on all addresses and with a certificate of their own are shown', async t => {
  const tls = join(data, '..', 'tls')
  mkdirSync(tls)
  const key = ['-keyout', 'key.pem', '-out', 'cert.pem', '-subj', '/CN=localhost', '-days', '2']
  const options = { cwd: tls, stdio: 'ignore' } as const
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...key], options)
  for (const [order, host] of [
    [{ listen: '127.0.0.1', page: 'v4' }, '127.0.0.1'],
    [{ listen: '::1', page: 'v6' }, '::1'],
    [{ listen: '0.0.0.0', page: 'all' }, '127.0.0.1'],
    [{ listen: '::', page: 'both' }, '127.0.0.1'],
    [{ listen: '127.0.0.1', page: 'sealed', tls }, '127.0.0.1'],
  ] as const) {
    const port = await servers.ask(order)
    const { previewUrl } = await forward(port)
    t.match(previewUrl, /^http:\/\/port-[a-z2-7]{16}\.localhost:\d+$/)
    t.match(await show(previewUrl), { status: 200, text: order.page }, order.page)
    t.match(
      await rowOf(port),
      {
        ...{ host, kind: 'workspace', origin: 'unknown', cwd: '.', title: 'Node.js program shown-server.js' },
        ...{ pid: servers.pid, forwardable: true, forwarded: true, previewUrl, command: /shown-server/ },
      },
      order.listen,
    )
    await unforward(port)
    await servers.ask({ close: port })
  }
})

t.test('a server in a terminal is of this terminal, also after it was started again', async t => {
  const order = JSON.stringify({ listen: '127.0.0.1', page: 'typed', port: 0 })
  const start = `'${process.execPath}' '${SHOWN_SERVER}' '${order}'`
  await client.call('POST /system/terminals', { name: 'web-shown', cwd: 'web', command: start })
  const found = await until('a server of the terminal', async () =>
    (await list()).find(({ session }) => session === 'web-shown'),
  )
  t.match(found, {
    origin: 'terminal',
    cwd: 'web',
    kind: 'workspace',
    purpose: 'Runs in web, started in the terminal web-shown.',
  })
  const { port } = found
  const { previewUrl } = await forward(port)
  t.match(await show(previewUrl), { text: 'typed' })
  process.kill(found.pid!)
  await rowOf(port, row => row === undefined)
  t.match(await show(previewUrl), { status: 502, text: /Nothing is listening on port/ })
  const command = start.replace('"port":0', `"port":${port}`)
  // The same shell starts it again.
  const { ticket } = await client.call('POST /system/ws-ticket', { purpose: 'terminal', name: 'web-shown' } as never)
  const typing = new WebSocket(`${url.replace('http', 'ws')}/system/terminal?session=web-shown&ticket=${ticket}`)
  await once(typing, 'open')
  typing.send(JSON.stringify({ type: 'input', data: `${command}\r` }))
  await until('it is shown again', async () => (await show(previewUrl)).text === 'typed')
  t.match(await rowOf(port), { forwarded: true, previewUrl })
  typing.close()
  await client.call('DELETE /system/terminals/{name}', { name: 'web-shown' })
  await unforward(port)
})

t.test(
  'a second forward answers the first address, and an ended one answers 502 until it is forwarded again',
  async t => {
    const port = await servers.ask({ listen: '127.0.0.1', page: 'one' })
    const before = (await activity('port.forwarded')).length
    const { previewUrl } = await forward(port)
    t.same(await forward(port), { previewUrl })
    t.equal((await activity('port.forwarded')).length, before + 1)
    t.equal((await show(previewUrl)).text, 'one')
    const opened = await socketAt(previewUrl)
    const cut = typeof opened === 'number' ? Promise.reject(new Error(`${opened}`)) : once(opened.socket, 'close')
    t.same(await unforward(port), { ok: true })
    await cut
    t.match(await show(previewUrl), { status: 502, text: /Nothing is forwarded here/ })
    t.match(await rowOf(port, row => row?.forwarded === false), { previewUrl: undefined })
    t.same(await forward(port), { previewUrl })
    t.equal((await show(previewUrl)).text, 'one')
    const ended = (await activity('port.unforwarded')).filter(({ extra }) => extra?.port === port)
    t.match(ended, exactly({ actor: 'owner@sandbox.local' }))
    await unforward(port)
  },
)

t.test('requests arrive as from a page of the server itself, without the headers of the sandbox', async t => {
  const port = await servers.ask({ listen: '127.0.0.1' })
  const { previewUrl } = await forward(port)
  const { host } = new URL(previewUrl)
  const { text } = await show(previewUrl, {
    path: '/head',
    method: 'POST',
    headers: {
      ...{
        origin: previewUrl,
        authorization: `Bearer ${daemon.session}`,
        'x-sandbox-control': 'x',
        'X-Sandbox-Any': 'y',
      },
      ...{ 'x-forwarded-host': host, cookie: 'own=1', 'x-app': 'z' },
    },
  })
  t.strictSame(
    JSON.parse(text),
    {
      method: 'POST',
      url: '/head',
      headers: {
        ...{ host: `localhost:${port}`, origin: `http://localhost:${port}`, cookie: 'own=1', 'x-app': 'z' },
        ...{ connection: 'close', 'content-length': '0' },
      },
    },
    'nothing else',
  )
  const basic = await show(previewUrl, { path: '/head', headers: { authorization: 'Basic YTpi' } })
  t.equal(JSON.parse(basic.text).headers.authorization, 'Basic YTpi', 'a credential of the server itself')
  t.equal((await show(previewUrl, { path: '/echo', method: 'PUT', body: 'x'.repeat(300_000) })).text.length, 300_000)
  const away = await show(previewUrl, { path: '/away' })
  t.match(away, { status: 302, headers: { location: `${previewUrl}/there?x=1`, 'set-cookie': exactly('a=1; Path=/') } })
  await unforward(port)
})

t.test('WebSockets and streams pass, and nothing in between ends them by time', async t => {
  const port = await servers.ask({ listen: '127.0.0.1' })
  const { previewUrl } = await forward(port)
  const opened = await socketAt(previewUrl, { path: '/head', origin: previewUrl })
  if (typeof opened === 'number') return t.fail(`refused with ${opened}`)
  const { socket, messages } = opened
  const next = async () => String((await messages.next()).value[0])
  t.match(JSON.parse(await next()), { headers: { host: `localhost:${port}`, origin: `http://localhost:${port}` } })
  socket.send('there and back')
  t.equal(await next(), 'there and back')
  let events = ''
  const { host, port: listener } = new URL(previewUrl)
  const asked = request({ host: '127.0.0.1', port: listener, path: '/events', headers: { host }, agent: false })
  await new Promise<void>(resolve => {
    asked.on('response', answer =>
      answer.setEncoding('utf8').on('data', (text: string) => {
        events += text
        if (events.includes('data: 5\n')) resolve()
      }),
    )
    asked.end()
  })
  // A stream of ten minutes would be ended by a timeout of one of its connections, on either side of the listener.
  const handles = (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles()
  const between = handles.filter(
    (each): each is { remotePort: number; localPort: number; timeout?: number } =>
      'remotePort' in each && 'localPort' in each && [each.remotePort, each.localPort].includes(port),
  )
  t.ok(between.length >= 2, 'the connections to the server')
  t.notOk(between.some(({ timeout = 0 }) => timeout > 0 && timeout < 600_000))
  asked.destroy()
  socket.terminate()
  await unforward(port)
})

t.test('a page of another site opens no WebSocket and changes nothing, and a guessed name is none', async t => {
  const port = await servers.ask({ listen: '127.0.0.1', page: 'mine' })
  const { previewUrl } = await forward(port)
  const { host, port: listener } = new URL(previewUrl)
  for (const origin of [
    'https://evil.example',
    'null',
    `http://localhost:${listener}`,
    url,
    previewUrl.replace('port-', 'port-a'),
  ]) {
    t.equal(await socketAt(previewUrl, { origin }), 403, origin)
    t.equal((await show(previewUrl, { method: 'POST', headers: { origin } })).status, 403, origin)
    t.equal((await show(previewUrl, { method: 'OPTIONS', headers: { origin } })).status, 403, origin)
  }
  t.match(await show(previewUrl, { headers: { origin: 'https://evil.example' } }), { status: 200, text: 'mine' })
  const names = [`localhost:${listener}`, '127.0.0.1', `preview-root.localhost`, `preview-root--web.localhost`]
  const bodies = new Set<string>()
  for (const name of [...names, `port-aaaaaaaaaaaaaaaa.localhost`, `${host.split(':')[0]}.evil.example`, `x.${host}`]) {
    const { status, text } = await show(previewUrl, { headers: { host: name } })
    t.equal(status, 404, name)
    bodies.add(text)
  }
  t.equal(bodies.size, 1, 'one answer for all of them')
  t.equal((await show(previewUrl, { headers: { host: host.toUpperCase() } })).text, 'mine')
  t.equal((await show(previewUrl, { path: `http://localhost:${new URL(url).port}/info` })).status, 404)
  t.match((await show(previewUrl, { headers: { host: 'no.localhost', accept: 'text/html' } })).text, /^<!doctype html>/)
  await unforward(port)
})

t.test('another program that takes the port is never shown, and the sandbox ends the forward', async t => {
  const port = await servers.ask({ listen: '127.0.0.1', page: 'first' })
  const other = shownServers(t, workspace)
  const { previewUrl } = await forward(port)
  t.equal((await show(previewUrl)).text, 'first')
  await servers.ask({ close: port })
  await other.ask({ listen: '127.0.0.1', port, page: 'second' })
  for (let asked = 0; asked < 3; asked++) t.not((await show(previewUrl)).text, 'second')
  await until('the forward has ended', async () => (await show(previewUrl)).text.includes('Nothing is forwarded here'))
  const ended = await until('it is recorded', async () => (await activity('port.unforwardedBySandbox'))[0])
  t.match(ended, { actor: 'sandbox:ports', extra: { port, reason: 'another program took the port' } })
  t.match(await rowOf(port), { forwarded: false })
  await other.end()
})

t.test('a new and an ended listener are told on the event stream, and listed so from then on', async t => {
  const events = ((await client.call('GET /events', {})) as AsyncIterable<{ kind: string; domains?: string[] }>)[
    Symbol.asyncIterator
  ]()
  const told = async () => {
    for (;;) {
      const { value, done } = await events.next()
      if (done || (value.kind === 'runtimeChanged' && value.domains?.includes('ports'))) return done !== true
    }
  }
  await events.next()
  const port = await servers.ask({ listen: '127.0.0.1' })
  const isListed = async () => (await list()).some(one => one.port === port)
  const listedSince = async (listed: boolean) => {
    while (await told()) if ((await isListed()) === listed) return true
    return false
  }
  t.ok(await listedSince(true))
  await servers.ask({ close: port })
  let waits = true
  const gone = listedSince(false).finally(() => (waits = false))
  // Others read the list meanwhile: what they got is not shared any more.
  await until('the list is right', async () => (await list(), !waits))
  t.ok(await gone)
  await events.return?.()
})

t.test('stored values are masked, and people limited to areas see their folders alone, without commands', async t => {
  meantInClear(daemon, 'arguments', 'the program that this test starts has one')
  const word = 'zirkonia-4711'
  const docs = shownServers(t, join(workspace, 'docs'), [JSON.stringify({ listen: '127.0.0.1', page: word })])
  const web = shownServers(t, join(workspace, 'web'))
  const outside = shownServers(t, data)
  const [inDocs, inWeb, away] = await Promise.all([docs, web, outside].map(each => each.ask({ listen: '127.0.0.1' })))
  const row = await until('its row', async () => (await list()).find(({ pid }) => pid === docs.pid))
  t.match(row.command, /\{\{secret:WORD\}\}/)
  t.notOk(JSON.stringify(await list()).includes(word))
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const seen = (await clientOf(daemon, 'ann@example.org').call('GET /ports')).ports
  t.ok(seen.length > 0 && seen.every(({ cwd, command }) => cwd === 'docs' && command === undefined))
  t.notOk(seen.some(({ port }) => port === inWeb || port === away))
  t.equal(inDocs! > 0, true)
  const whole = (await clientOf(daemon, 'vic@example.org').call('GET /ports')).ports
  t.ok(whole.some(({ port }) => port === inWeb))
  t.ok(whole.findIndex(({ kind }) => kind === 'system') > whole.findLastIndex(({ kind }) => kind === 'workspace'))
})

t.test('two conversations serve one port number at two addresses', async t => {
  for (const [id, inode] of [
    ['left', '91'],
    ['right', '92'],
  ] as const) {
    const path = join(data, '..', `${id}.sock`)
    const relay = createServer(socket =>
      socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${id}`)),
    )
    await new Promise<void>(resolve => relay.listen(path, resolve))
    t.teardown(() => relay.close())
    inNetworks.set(id, { path, sockets: [{ port: 3000, address: '0.0.0.0', inode }] })
  }
  const addresses = [await forward(3000, 'left'), await forward(3000, 'right')].map(({ previewUrl }) => previewUrl)
  t.not(addresses[0], addresses[1])
  t.match(await Promise.all(addresses.map(async each => (await show(each)).text)), exactly('left', 'right'))
  const rows = (await list()).filter(({ port, conversationId }) => port === 3000 && conversationId)
  t.match(
    rows,
    exactly(
      { conversationId: 'left', origin: 'agent', previewUrl: addresses[0] },
      { conversationId: 'right', origin: 'agent', previewUrl: addresses[1] },
    ),
  )
  inNetworks.set('left', { ...inNetworks.get('left')!, sockets: [] })
  t.equal((await show(addresses[0]!)).status, 502)
  t.equal((await show(addresses[1]!)).text, 'right')
  for (const conversationId of ['left', 'right'])
    await client.call('POST /ports/unforward', { port: 3000, conversationId })
  inNetworks.clear()
})

t.test('of 16 addresses the longest unused is taken again, and with 16 live ones the next is refused', async t => {
  const many: number[] = []
  for (let at = 0; at < 17; at++) many.push(await servers.ask({ listen: '127.0.0.1', page: `page ${at}` }))
  const addresses: string[] = []
  for (const port of many.slice(0, 16)) addresses.push((await forward(port)).previewUrl)
  t.equal(new Set(addresses).size, 16)
  const { status, message } = await refused(forward(many[16]!))
  t.equal(status, 409)
  for (const port of many.slice(0, 16)) t.match(message, String(port))
  await servers.ask({ close: many[3]! })
  await until('it has no listener', async () => (await show(addresses[3]!)).status === 502)
  const { previewUrl } = await forward(many[16]!)
  t.notOk(addresses.includes(previewUrl), 'who has the address of another port does not reach this one')
  t.equal((await show(previewUrl)).text, 'page 16')
  t.equal((await show(addresses[3]!)).status, 404)
  t.equal((await show(addresses[0]!)).text, 'page 0')
})
