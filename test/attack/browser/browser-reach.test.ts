import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import dns, { type LookupAddress } from 'node:dns'
import { request } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { Gate } from '../../../plugins/system/browsers/gate.js'
import type { NetworkReach } from '../../../sdk/node/network/policy.js'
import { between, siteOf, withChromium, type Page } from '../../support/browser/browser.js'
import { daemonWith } from '../../support/daemon.js'
import { ATTEMPTS, WORKER } from './browser-attempts.js'

/** Resolves names like a hostile DNS server, with a new answer each time. */
const namesOf = (t: Pick<Test, 'teardown'>, names: { readonly [name: string]: () => string[] }): void => {
  const { lookup } = dns
  const lie = (name: string, options: object, found: (error: Error | null, addresses: LookupAddress[]) => void) => {
    const said = names[name]
    if (!said) return lookup(name, { ...options, all: true }, found)
    found(
      null,
      said().map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
  dns.lookup = lie as never
  syncBuiltinESMExports()
  t.teardown(() => {
    dns.lookup = lookup
    syncBuiltinESMExports()
  })
}

/** Counts the connections to a port of this process. */
const connectionsTo = (t: Pick<Test, 'teardown'>, port: number): { count: number } => {
  const seen = { count: 0 }
  const hear = (message: unknown) => {
    if ((message as { socket: Socket }).socket.localPort === port) seen.count += 1
  }
  subscribe('net.server.socket', hear)
  t.teardown(() => void unsubscribe('net.server.socket', hear))
  return seen
}

const throughGate = (
  gate: Gate,
  url: string,
  headers: { [name: string]: string } = {},
): Promise<{ status: number; body: string } | undefined> =>
  new Promise(answered => {
    const asked = request(
      { host: '127.0.0.1', port: gate.port, path: url, headers: { host: URL.parse(url)?.host ?? 'x', ...headers } },
      async answer => answered({ status: answer.statusCode!, body: await text(answer) }),
    )
    asked.on('error', () => answered(undefined)).end()
  })

/** The answer to raw bytes sent to the gate, until it closes. */
const rawTo = async (gate: Gate, bytes: string): Promise<string> => {
  const socket = connect(gate.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(bytes)
  return text(socket).catch(() => '')
}

const gateOf = async (t: Pick<Test, 'teardown'>, reach: NetworkReach): Promise<Gate> => {
  const gate = await Gate.open(async () => reach)
  t.teardown(() => gate.close())
  return gate
}

t.test('the gate connects to checked addresses, even if a name resolves differently the next time', async t => {
  const site = await siteOf(t, { '/': 'inside' })
  const seen = connectionsTo(t, site.port)
  let turn = 0
  namesOf(t, {
    'rebound.example': () => (turn++ === 0 ? ['203.0.113.1'] : ['127.0.0.1']),
    'both.example': () => ['127.0.0.1', '::1'],
    'mapped.example': () => ['::ffff:127.0.0.1'],
    'secrets.example': () => ['169.254.169.254'],
  })
  const far = await gateOf(t, { near: false, listeners: [] })
  t.equal(
    await far.barred(new URL(`http://rebound.example:${site.port}`)),
    undefined,
    'the first resolution is a public address',
  )
  for (const name of ['rebound', 'both', 'mapped', 'secrets']) {
    t.equal(await throughGate(far, `http://${name}.example:${site.port}/`), undefined, name)
    t.match(far.failure(new URL(`http://${name}.example:${site.port}`)), { barred: true, why: /is not asked/ })
    t.equal(
      await rawTo(far, `CONNECT ${name}.example:${site.port} HTTP/1.1\r\nhost: x\r\n\r\n`),
      '',
      `a tunnel to ${name}`,
    )
  }
  t.equal(seen.count, 0)
  const near = await gateOf(t, { near: true, listeners: [] })
  t.match(
    await throughGate(near, `http://both.example:${site.port}/`),
    { status: 200, body: 'inside' },
    'the same is open if nearby addresses are allowed',
  )
})

t.test('requests and tunnels connect to the address that was checked', async t => {
  const site = await siteOf(t, { '/': 'inside' })
  let turn = 0
  // From the second resolution on, nothing listens at the address.
  namesOf(t, { 'moved.example': () => [turn++ === 0 ? '127.0.0.1' : '127.0.0.2'] })
  const gate = await gateOf(t, { near: true, listeners: [] })
  t.match(await throughGate(gate, `http://moved.example:${site.port}/`), { status: 200, body: 'inside' })
  turn = 0
  t.match(
    await rawTo(
      gate,
      `CONNECT moved.example:${site.port} HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\nconnection: `
        + `close\r\n\r\n`,
    ),
    /200 OK[^]*inside/,
  )
})

t.test("the gate serves only the sandbox's browsers, and reveals nothing of itself to servers", async t => {
  const heard: string[][] = []
  const site = await siteOf(t, {
    '/': (request, response) => void (heard.push(request.rawHeaders), response.end('hello')),
  })
  const gate = await gateOf(t, { near: true, listeners: [{ host: '127.0.0.1', port: 9 }] })
  t.equal(
    await rawTo(gate, `GET / HTTP/1.1\r\nhost: 127.0.0.1:${gate.port}\r\n\r\n`),
    '',
    'a page of a browser of the machine cannot name a whole address',
  )
  for (const target of ['ftp://127.0.0.1/', 'file:///etc/passwd', `http://127.0.0.1:9/`, '127.0.0.1'])
    t.equal(await throughGate(gate, target), undefined, target)
  for (const target of [
    '127.0.0.1:9',
    'user@127.0.0.1:9',
    '127.0.0.1:9/x',
    ':80',
    '[::ffff:127.0.0.1]:9',
    '127.1:9',
    '0x7f000001:9',
    '0.0.0.0:9',
  ]) {
    t.equal(await rawTo(gate, `CONNECT ${target} HTTP/1.1\r\nhost: x\r\n\r\n`), '', target)
  }
  t.match(
    await throughGate(gate, `${site.url}/`, {
      'proxy-authorization': 'Basic eA==',
      'proxy-connection': 'keep-alive',
      'x-own': 'kept',
      connection: 'x-hop',
      'x-hop': '1',
    }),
    { body: 'hello' },
  )
  const names = heard[0]!.filter((_, at) => at % 2 === 0)
  t.same(names.map(name => name.toLowerCase()).sort(), ['connection', 'host', 'x-own'])
  t.match(
    await rawTo(
      gate,
      `CONNECT 127.0.0.1:${site.port} HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\nconnection: `
        + `close\r\n\r\n`,
    ),
    /^HTTP\/1\.1 200 Connection Established\r\n\r\nHTTP\/1\.1 200 OK.*hello$/s,
  )
})

t.test(
  'no page of a browser reaches the sandbox or cloud metadata addresses by any kind of request',
  withChromium(),
  async t => {
    const daemon = await daemonWith(t, ['system'])
    const { port } = new URL(daemon.url)
    const seen = connectionsTo(t, Number(port))
    let turn = 0
    namesOf(t, {
      'rebound.example': () => [turn++ % 2 ? '127.0.0.1' : '::1'],
      'secrets.example': () => ['169.254.169.254'],
    })
    const other = await siteOf(t, {
      '/health': (_, response) => void response.writeHead(200, { 'access-control-allow-origin': '*' }).end('near'),
    })
    const bases = [
      '127.0.0.1',
      'localhost',
      'app.localhost',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '127.1',
      '2130706433',
      '0x7f.1',
      '0.0.0.0',
      'rebound.example',
    ].map(host => `http://${host}:${port}`)
    const leads = bases.map(base => `<iframe src="${base}/health"></iframe><img src="${base}/health">`).join('')
    const targets = [daemon.url, `http://rebound.example:${port}`, 'http://169.254.169.254', 'http://secrets.example']
    const done = Promise.withResolvers<string[]>()
    const pages: { [path: string]: Page } = {
      '/': `<!doctype html><title>Evil</title><body>${leads}
      <script type="module">
        const attempts = ${ATTEMPTS}
        const read = []
        for (const base of ${JSON.stringify(targets)}) read.push(...await attempts(base, 'sbs_x.y'))
        for (const status of [301, 302, 303, 307, 308]) for (const base of ${JSON.stringify(bases)}) {
          const at = '/to?' + new URLSearchParams({ status, url: base + '/health' })
          await fetch(at).then(async answer => read.push('redirect ' + await answer.text())).catch(() => {})
          if (status === 302) document.body.append(Object.assign(document.createElement('iframe'), { src: at }))
        }
        const near = await fetch(${JSON.stringify(`${other.url}/health`)}).then(answer => answer.text(), String)
        read.push(near)
        await fetch('/done', { method: 'POST', body: JSON.stringify(read) })
      </script>`,
      '/worker.js': (_, response) => void response.writeHead(200, { 'content-type': 'text/javascript' }).end(WORKER),
      '/to': (asked, response) => {
        const query = new URL(asked.url!, 'http://x').searchParams
        response.writeHead(Number(query.get('status')), { location: query.get('url')! }).end()
      },
      '/done': async (asked, response) => {
        done.resolve(JSON.parse(await text(asked)) as string[])
        response.end()
      },
    }
    const evil = await siteOf(t, pages)
    await between(daemon, 'browsers.open', { name: 'web-a', url: evil.url })
    t.same(await done.promise, ['near'], "it reads only the person's server on the same machine")
    for (const base of [
      ...bases,
      'http://169.254.169.254',
      'http://100.100.100.200',
      'http://[fd00:ec2::254]',
      'http://secrets.example',
    ]) {
      await t.rejects(
        between(daemon, 'browsers.page', { name: 'web-a', action: 'goto', url: `${base}/health` }),
        { reason: 'unprocessable', message: /is not asked/ },
        base,
      )
    }
    for (const base of bases) {
      const url = `${evil.url}/to?${String(new URLSearchParams({ status: '302', url: `${base}/health` }))}`
      await t.rejects(
        between(daemon, 'browsers.page', { name: 'web-a', action: 'goto', url }),
        { reason: 'unprocessable', message: /is not asked/ },
        `led to ${base}`,
      )
    }
    t.equal(seen.count, 0, 'the sandbox received no request')
    await fetch(`${daemon.url}/health`)
    t.equal(seen.count, 1, 'the sandbox counts requests')
  },
)
