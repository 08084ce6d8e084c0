import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { createArrival } from '../../../kernel/http/origin.js'

const [PROXY, INNER, OTHER, CLIENT] = ['10.0.0.1', '10.0.0.2', '10.0.0.9', '192.0.2.7']

interface Came {
  readonly from?: string
  readonly at?: string
  readonly host?: string
  readonly headers?: { readonly [name: string]: string }
}

/** A request on a connection from one address to another. */
const request = ({
  from = '127.0.0.1',
  at = '127.0.0.1',
  host = 'localhost:8090',
  headers = {},
}: Came): IncomingMessage => {
  const all = { host, ...headers }
  return {
    method: 'GET',
    headers: all,
    rawHeaders: Object.entries(all).flat(),
    socket: { remoteAddress: from, remotePort: 40_000, localAddress: at },
  } as unknown as IncomingMessage
}

const arrival = createArrival({ trustedProxies: [PROXY, INNER], hosts: ['box.example.org'] })

t.test('the client behind trusted proxies is the last address that is not a trusted proxy', t => {
  const cases: [came: Came, address: string][] = [
    [{ from: PROXY, headers: { 'x-forwarded-for': CLIENT } }, CLIENT],
    [{ from: PROXY, headers: { 'x-forwarded-for': `127.0.0.1, ${CLIENT}` } }, CLIENT],
    [{ from: PROXY, headers: { 'x-forwarded-for': `127.0.0.1, ${CLIENT}, ${INNER}` } }, CLIENT],
    [{ from: `::ffff:${PROXY}`, headers: { 'x-forwarded-for': `${OTHER}, ${CLIENT} ,${INNER},` } }, CLIENT],
    [{ from: PROXY, headers: { 'x-forwarded-for': INNER } }, PROXY],
    [{ from: PROXY }, PROXY],
    [{ from: OTHER, headers: { 'x-forwarded-for': CLIENT } }, OTHER],
    [{ headers: { 'x-forwarded-for': CLIENT } }, '127.0.0.1'],
  ]
  for (const [came, address] of cases) t.equal(arrival(request(came)).address, address, JSON.stringify(came))
  t.end()
})

t.test('a request counts as local only if both ends of the connection are', t => {
  const cases: [came: Came, local: boolean, ownHost: boolean][] = [
    [{}, true, true],
    [{ from: '::1', at: '::1', host: '[::1]:8090' }, true, true],
    [{ host: '127.0.0.1:8090' }, true, true],
    [{ from: OTHER, at: '10.0.0.5' }, false, false],
    [{ from: OTHER, at: '10.0.0.5', host: 'box.example.org' }, false, true],
    [{ host: 'box.example.org' }, false, true],
    [{ host: 'rebound.example.org' }, false, false],
    [{ host: 'localhost.example.org' }, false, false],
    ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'].map(
      (name): [Came, boolean, boolean] => [{ headers: { [name]: 'x' } }, false, true],
    ),
  ]
  for (const [came, local, ownHost] of cases) {
    const found = arrival(request(came))
    t.same([found.local, found.ownHost], [local, ownHost], JSON.stringify(came))
  }
  t.end()
})

t.test('only a trusted proxy can declare that a request came encrypted', t => {
  const secure = { 'x-forwarded-for': CLIENT, 'x-forwarded-proto': 'https' }
  const cases: [came: Came, plain: boolean, base: string][] = [
    [{ from: PROXY, host: 'box.example.org', headers: secure }, false, 'https://box.example.org'],
    [{ from: PROXY, host: 'box.example.org', headers: { 'x-forwarded-for': CLIENT } }, true, 'http://box.example.org'],
    [{ from: OTHER, host: 'box.example.org', headers: secure }, true, 'http://box.example.org'],
    [{ from: OTHER, host: 'box.example.org' }, true, 'http://box.example.org'],
    [{}, false, 'http://localhost:8090'],
  ]
  for (const [came, plain, base] of cases) {
    const found = arrival(request(came))
    t.same([found.plain ?? false, found.base], [plain, base], JSON.stringify(came))
  }
  const both = { 'x-forwarded-for': CLIENT, 'x-forwarded-proto': 'https, http' }
  const twice = request({ from: PROXY, host: 'box.example.org', headers: both })
  twice.rawHeaders.splice(-2, 2, 'x-forwarded-proto', 'https', 'x-forwarded-proto', 'http')
  t.equal(arrival(twice).plain, true, 'a header of the client beside that of the proxy')
  t.end()
})
