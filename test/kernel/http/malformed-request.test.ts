import { once } from 'node:events'
import t, { type Test } from 'tap'
import { daemonWith, type Support } from '../../support/daemon.js'
import { connected, rawRequest } from '../../attack/support.js'

const started = async (t: Test): Promise<Support & { host: string }> => {
  const daemon = await daemonWith(t, ['system', 'agent', 'agents'])
  return { ...daemon, host: new URL(daemon.url).host }
}

t.test('a malformed request is answered with a status and a message, and the connection is closed', async t => {
  const { url, host } = await started(t)
  const cases: readonly (readonly [what: string, bytes: string, status: number, message: RegExp])[] = [
    ['no HTTP at all', 'hello\r\n\r\n', 400, /^expected a valid HTTP\/1\.1 request, found /],
    ['TLS', '\x16\x03\x01\x02\x00', 400, /expected a valid HTTP/],
    ['a blank in the name of a header', `GET /info HTTP/1.1\r\nhost: ${host}\r\nx y: z\r\n\r\n`, 400, /header/],
    ['no host', 'GET /health HTTP/1.1\r\nconnection: close\r\n\r\n', 400, /^expected one Host header, found none$/],
    [
      'an invalid length',
      `POST /agent HTTP/1.1\r\nhost: ${host}\r\ncontent-length: many\r\n\r\n`,
      400,
      /Content-Length/,
    ],
    [
      'an address that is too long',
      `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: ${host}\r\n\r\n`,
      431,
      /^expected at most 16384 bytes/,
    ],
    [
      'a proxy request',
      `CONNECT example.org:443 HTTP/1.1\r\nhost: ${host}\r\n\r\n`,
      405,
      /^this sandbox is not a proxy/,
    ],
  ]
  for (const [what, bytes, status, message] of cases) {
    const answer = await rawRequest(url, Buffer.from(bytes, 'latin1'))
    t.equal(answer.status, status, what)
    t.match((JSON.parse(answer.body) as { message: string }).message, message, what)
    t.match(answer.headers, /x-content-type-options: nosniff/, what)
  }
})

t.test('every header line is read, however many there are', async t => {
  const { url, host, session } = await started(t)
  const many = 'a:\r\n'.repeat(2500)
  const twice = await rawRequest(
    url,
    `GET /info HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${session}\r\nconnection: close\r\n${many}host: `
      + `other.example\r\n\r\n`,
  )
  t.equal(twice.status, 400)
  t.match(twice.body, /expected header host once/)
})

t.test('an unknown expect header is ignored', async t => {
  const { url, host, session } = await started(t)
  const answer = await rawRequest(
    url,
    `GET /info HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${session}\r\nexpect: wonders\r\nconnection: `
      + `close\r\n\r\n`,
  )
  t.equal(answer.status, 200)
})

t.test('a running call is answered, regardless of what follows on the connection', async t => {
  const { url, host, session, client } = await started(t)
  const whole =
    `POST /system/control/tokens HTTP/1.1\r\nhost: ${host}\r\nauthorization: `
    + `Bearer ${session}\r\ncontent-type: application/json\r\ncontent-length: 28\r\n\r\n{"label":"a","scope":"read"}`
  const answer = await rawRequest(url, `${whole}rubbish\r\n\r\n`)
  t.equal(answer.status, 200)
  t.match(answer.headers, /connection: close/i)
  t.match(JSON.parse(answer.body), { token: String })
  t.equal((await client.call('GET /system/control/tokens')).tokens.length, 1)
})

t.test('garbage after a valid request is refused after its answer, and never inside a stream', async t => {
  const { url, host, session, client } = await started(t)
  const socket = await connected(t, url)
  let text = ''
  socket.on('data', part => (text += part))
  socket.write(`GET /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
  await once(socket, 'data')
  socket.write('rubbish\r\n\r\n')
  await once(socket, 'close')
  t.match(text, /^HTTP\/1\.1 200 OK[^]*HTTP\/1\.1 400 Bad Request[^]*"message":"expected a valid HTTP/)
  const stream = await connected(t, url)
  stream.write(`GET /events HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${session}\r\n\r\n`)
  text = ''
  stream.on('data', part => (text += part))
  await once(stream, 'data')
  stream.write('rubbish\r\n\r\n')
  await once(stream, 'close')
  t.equal(text.match(/HTTP\/1\.1/g)?.length, 1, text.slice(-300))
  t.same((await client.call('GET /agents')).agents, [])
})
