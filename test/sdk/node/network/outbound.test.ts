import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { askOutside, type OutboundRequest } from '../../../../sdk/node/network/outbound.js'

const served = async (
  t: Test,
  answer: RequestListener,
): Promise<{ url: string; port: number; seen: IncomingMessage[] }> => {
  const seen: IncomingMessage[] = []
  const server = createServer((request, response) => {
    seen.push(request)
    void answer(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, seen }
}

const asked = (url: string, more: Partial<OutboundRequest> = {}) =>
  askOutside({ url, reach: { near: true, listeners: [] }, timeoutMs: 5000, maxBytes: 1000, ...more })

t.test('an answer has its status, headers and body', async t => {
  const { url, seen } = await served(t, (_, response) =>
    response.writeHead(404, { 'content-type': 'text/plain' }).end('not here'),
  )
  const reply = await asked(`${url}/a?b=c`, { headers: { 'x-mine': '1' } })
  t.match(reply, {
    status: 404,
    statusText: 'Not Found',
    truncated: false,
    headers: { 'content-type': 'text/plain' },
    url: `${url}/a?b=c`,
  })
  t.equal(reply.body.toString(), 'not here')
  t.match(seen[0], { method: 'GET', url: '/a?b=c', headers: { 'x-mine': '1' } })
})

t.test('a body is read up to its limit', async t => {
  const { url } = await served(t, (_, response) => {
    const more = () => {
      while (response.write('x'.repeat(10_000)));
      response.once('drain', more)
    }
    more()
  })
  const { body, truncated } = await asked(url)
  t.same([body.length, truncated], [1000, true])
})

t.test('only http and https addresses without a password are requested', async t => {
  for (const url of [
    'file:///etc/passwd',
    'ftp://x',
    'javascript:1',
    'data:,x',
    'nonsense',
    '',
    'http://',
    'http://a:b@127.0.0.1/',
  ])
    await t.rejects(asked(url), { reason: 'invalid', message: /^url: / }, url)
})

t.test(
  'the daemon, link-local and metadata addresses are never requested, and private ones only with permission',
  async t => {
    const { url, port, seen } = await served(t, (_, response) => response.end('secret'))
    const own = { near: true, listeners: [{ host: '127.0.0.1', port }] }
    for (const host of [
      '127.0.0.1',
      'localhost',
      '[::ffff:127.0.0.1]',
      '0.0.0.0',
      '2130706433',
      '0x7f.1',
      '127.0.0.1.',
    ])
      await t.rejects(
        asked(`http://${host}:${port}/`, { reach: own }),
        { reason: 'forbidden', message: /sandbox itself/ },
        host,
      )
    for (const host of ['169.254.169.254', '[fe80::1]', '[::ffff:a9fe:a9fe]', '2852039166'])
      await t.rejects(asked(`http://${host}/latest`), { reason: 'forbidden', message: /is not asked/ }, host)
    await t.rejects(asked(url, { reach: { near: false, listeners: [] } }), { reason: 'forbidden', message: /loopback/ })
    t.equal(seen.length, 0, 'nothing was sent')
  },
)

t.test('every redirect is checked again', async t => {
  const inner = await served(t, (_, response) => response.end('secret'))
  const targets = [inner.url, 'http://169.254.169.254/', 'file:///etc/passwd']
  const { url } = await served(t, ({ url = '' }, response) =>
    response.writeHead(302, { location: targets[Number(url.slice(1))] }).end(),
  )
  const reach = { near: true, listeners: [{ host: '127.0.0.1', port: inner.port }] }
  await t.rejects(asked(`${url}/0`, { reach }), { reason: 'forbidden', message: /sandbox itself/ })
  await t.rejects(asked(`${url}/1`, { reach }), { reason: 'forbidden', message: /is not asked/ })
  await t.rejects(asked(`${url}/2`, { reach }), { reason: 'invalid', message: /^url: / })
  t.equal(inner.seen.length, 0)
})

t.test('a redirect to another server keeps the headers that are for every server alone', async t => {
  const bodies: string[] = []
  const other = await served(t, async (request, response) => {
    for await (const piece of request) bodies.push(String(piece))
    response.end(request.method)
  })
  const { url } = await served(t, ({ url: path }, response) =>
    response.writeHead(path === '/see' ? 303 : 307, { location: `${other.url}/there` }).end(),
  )
  const post = {
    method: 'POST',
    body: 'words',
    headers: {
      authorization: 'Bearer x',
      cookie: 'a=b',
      'x-api-key': 'k',
      'content-type': 'text/plain',
      'x-mine': '1',
    },
  }
  t.match(await asked(`${url}/see`, post), { url: `${other.url}/there`, body: Buffer.from('GET') })
  t.match(await asked(`${url}/keep`, post), { body: Buffer.from('POST') })
  t.same(bodies, ['words'])
  t.equal(other.seen[1]?.headers['content-type'], 'text/plain')
  for (const { headers } of other.seen) {
    for (const name of ['authorization', 'cookie', 'x-api-key', 'x-mine']) t.equal(headers[name], undefined, name)
  }
})

t.test('endless redirects, silence and a closed connection end with a message', async t => {
  const { url, seen } = await served(t, ({ url: path, socket }, response) => {
    if (path === '/round') return void response.writeHead(302, { location: '/round' }).end()
    if (path === '/gone') socket.destroy()
  })
  await t.rejects(asked(`${url}/round`), { reason: 'dependency', message: /more than 10 times/ })
  t.equal(seen.length, 11)
  await t.rejects(asked(`${url}/gone`), { reason: 'dependency', message: /could not be asked/ })
  await t.rejects(asked(`${url}/silent`, { timeoutMs: 50 }), { reason: 'dependency', message: /within 50 ms/ })
  await t.rejects(asked('http://127.0.0.1:9/'), { reason: 'dependency', message: /nothing is listening/ })
})

t.test('a stop ends the request with its own reason', async t => {
  const stop = new AbortController()
  const { url } = await served(t, () => stop.abort(new Error('stopped')))
  await t.rejects(asked(url, { signal: stop.signal }), { message: 'stopped' })
})
