import { createConnection } from 'node:net'
import t from 'tap'
import { daemonWith, type Support } from '../../support/daemon.js'

/** Sends raw bytes and returns the whole answer, for requests that no client library would send. */
const raw = (url: string, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    let answer = ''
    createConnection(Number(port), hostname, function (this: NodeJS.WritableStream) {
      this.write(text)
    })
      .on('data', part => (answer += part))
      .on('close', () => resolve(answer))
      .on('error', reject)
  })

const get = (daemon: Support, target: string, headers: readonly string[] = []): Promise<string> => {
  const { host } = new URL(daemon.url)
  return raw(
    daemon.url,
    [
      `GET ${target} HTTP/1.1`,
      `Host: ${host}`,
      `Authorization: Bearer ${daemon.session}`,
      'Connection: close',
      ...headers,
      '',
      '',
    ].join('\r\n'),
  )
}

const status = (answer: string): number => Number(answer.split(' ', 2)[1])

t.test('a path matches exactly or not at all', async t => {
  const daemon = await daemonWith(t, ['system'])
  const { host } = new URL(daemon.url)
  t.equal(status(await get(daemon, '/info')), 200)
  for (const target of [
    '/INFO',
    '/info/',
    '//info',
    '/info//',
    '/%69nfo%00',
    '/info/%2e%2e/info',
    '/../info',
    '/info/..',
    '/system%2Fsign-in',
    '/system/%',
    '/system/%zz',
    '/system/control/tokens/a%2Fb',
    '/nothing',
  ]) {
    t.equal(status(await get(daemon, target)), 404, target)
  }
  t.equal(
    status(await raw(daemon.url, `GET http://${host}/info HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)),
    404,
    'an absolute target',
  )
  const wrong = await daemon.fetch('/info', { method: 'POST', body: '{}' })
  t.equal(wrong.status, 405)
  t.equal(wrong.headers.get('allow'), 'HEAD, GET')
  t.match(await wrong.json(), { message: /does not take POST/ })
})

t.test('an ambiguous request is refused', async t => {
  const daemon = await daemonWith(t, ['system'])
  const { host } = new URL(daemon.url)
  t.equal(status(await get(daemon, '/info', [`Host: ${host}`])), 400, 'two hosts')
  t.equal(status(await get(daemon, '/info', ['Authorization: Bearer x'])), 400, 'two credentials of the same kind')
  t.equal(
    status(await get(daemon, '/info', ['X-HTTP-Method-Override: DELETE'])),
    200,
    'an override header changes nothing',
  )
  t.equal(
    status(
      await raw(
        daemon.url,
        `POST /system/session HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\nTransfer-Encoding: `
          + `chunked\r\nConnection: close\r\n\r\n{}`,
      ),
    ),
    400,
    'two lengths',
  )
})

t.test('a foreign host or origin is refused before anything else', async t => {
  const daemon = await daemonWith(t, ['system'], { deployment: { http: { origins: ['https://*.example.org'] } } })
  t.equal(
    status(
      await get(daemon, '/info', []).then(() =>
        raw(daemon.url, 'GET /info HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'),
      ),
    ),
    403,
  )
  t.match(
    await raw(daemon.url, 'GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'),
    /200 OK[^]*\{"ok":true\}$/,
  )
  const from = (origin: string, method = 'POST') =>
    daemon.fetch('/system/sessions/revoke', {
      method,
      ...(method === 'POST' && { body: '{"id":"none"}' }),
      headers: { origin },
    })
  t.equal((await from('https://evil.example')).status, 403)
  t.equal((await from('null')).status, 403)
  const own = await from('https://a.example.org')
  t.equal(own.status, 200)
  t.equal(own.headers.get('access-control-allow-origin'), 'https://a.example.org')
  t.equal(own.headers.get('vary'), 'Origin')
  t.equal((await from('https://a.b.example.org')).status, 403, 'a wildcard stands for one label')
  const reading = await daemon.fetch('/info', { headers: { origin: 'https://evil.example' } })
  t.equal(reading.headers.get('access-control-allow-origin'), null, 'a page of another site cannot read an answer')
  t.equal(
    (
      await daemon.fetch('/system/sessions/revoke', {
        method: 'POST',
        body: '{"id":"none"}',
        headers: { 'sec-fetch-site': 'cross-site' },
      })
    ).status,
    403,
  )
  const asked = await daemon.fetch('/info', { method: 'OPTIONS', headers: { origin: 'https://a.example.org' } })
  t.equal(asked.status, 204)
  t.match(asked.headers.get('access-control-allow-headers'), /x-sandbox-control/)
})

t.test('every answer has the security headers for browsers', async t => {
  const daemon = await daemonWith(t, ['system'])
  for (const path of ['/info', '/health', '/nothing', '/system/control/tokens']) {
    const { headers } = await daemon.fetch(path)
    t.equal(headers.get('x-content-type-options'), 'nosniff', path)
    t.equal(headers.get('content-security-policy'), "default-src 'none'; frame-ancestors 'none'", path)
    t.equal(headers.get('access-control-allow-origin'), null, path)
  }
})

t.test('HEAD is GET without the body, with the same checks', async t => {
  const daemon = await daemonWith(t, ['system'])
  const head = await daemon.fetch('/system/control/tokens', { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(await head.text(), '')
  t.equal((await fetch(`${daemon.url}/system/control/tokens`, { method: 'HEAD' })).status, 401)
})

t.test('the description of the daemon has an ETag, and is not sent twice', async t => {
  const daemon = await daemonWith(t, ['system'])
  const first = await daemon.fetch('/info')
  const etag = first.headers.get('etag')!
  const again = await daemon.fetch('/info', { headers: { 'if-none-match': etag } })
  t.equal(again.status, 304)
  t.equal(await again.text(), '')
})

t.test('the document and the reference page need no credential and load nothing from other hosts', async t => {
  const daemon = await daemonWith(t, ['system'])
  const document = (await (await fetch(`${daemon.url}/openapi.json`)).json()) as { openapi: string; paths: object }
  t.match(document.openapi, /^3\.1/)
  t.ok('/system/control/tokens' in document.paths)
  t.notOk('/agents' in document.paths, 'a group that is not loaded is left out')
  const page = await fetch(`${daemon.url}/reference`)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'; style-src 'self'; script-src 'self'/)
  const html = await page.text()
  t.match(html, /system\.mintToken|POST \/system\/control\/tokens|\/system\/control\/tokens/)
  t.notMatch(html, /(src|href)="https?:/)
  t.equal((await fetch(`${daemon.url}/reference/style.css`)).status, 200)
  t.equal((await fetch(`${daemon.url}/reference/script.js`)).status, 200)
})
