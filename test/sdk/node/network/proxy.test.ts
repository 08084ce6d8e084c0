import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { connect, createServer as createSocketServer, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { refuse } from '../../../../sdk/refusal.js'
import type { Dial } from '../../../../sdk/node/network/policy.js'
import { EgressProxy } from '../../../../sdk/node/network/proxy.js'
import type { Target } from '../../../../sdk/node/network/host-form.js'

/**
 * A proxy that connects every name to one server; `closed.example` is refused and `gone.example`
 * does not answer.
 */
const behind = async (t: Test, port: number) => {
  const asked: Target[] = []
  const dial: Dial = async target => {
    asked.push(target)
    if (target.host === 'closed.example') refuse('forbidden', 'closed.example is not reached')
    const socket = connect({ port: target.host === 'gone.example' ? 1 : port, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    return socket.pause()
  }
  const proxy = new EgressProxy(dial)
  const server = createSocketServer({ allowHalfOpen: true }, socket => proxy.serve(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { asked, port: (server.address() as AddressInfo).port }
}

const web = async (t: Test) => {
  const server = createServer((asked, answer) => {
    const pieces: Buffer[] = []
    asked
      .on('data', (piece: Buffer) => pieces.push(piece))
      .on('end', () => {
        answer.writeHead(asked.url === '/missing' ? 404 : 200, { 'x-many': ['a', 'b'] })
        answer.end(
          JSON.stringify({
            method: asked.method,
            url: asked.url,
            headers: asked.headers,
            body: Buffer.concat(pieces).toString(),
          }),
        )
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

const ask = async (
  port: number,
  path: string,
  { body, ...options }: { method?: string; headers?: { [name: string]: string }; body?: string } = {},
) => {
  const sent = request({ host: '127.0.0.1', port, path, ...options }).end(body)
  const [answer] = (await once(sent, 'response')) as [import('node:http').IncomingMessage]
  let text = ''
  for await (const piece of answer) text += String(piece)
  return { status: answer.statusCode, headers: answer.headers, text }
}

/** Sends bytes on a plain connection and returns the whole answer. */
const talk = async (port: number, ...said: Buffer[]): Promise<Buffer> => {
  const socket = connect(port, '127.0.0.1')
  for (const words of said) {
    socket.write(words)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  const pieces: Buffer[] = []
  socket.on('data', piece => pieces.push(piece))
  await new Promise(resolve => socket.on('close', resolve).setTimeout(3000, () => socket.destroy()))
  return Buffer.concat(pieces)
}

t.test('an absolute address is requested with method, headers and body, without the headers for the proxy', async t => {
  const { port, asked } = await behind(t, await web(t))
  const { status, headers, text } = await ask(port, 'http://a.example:8080/path?x=1', {
    method: 'POST',
    body: 'words',
    headers: {
      'proxy-authorization': 'secret',
      'x-own': '1',
      'x-hop': '2',
      connection: 'x-hop',
      host: 'other.example',
    },
  })
  t.equal(status, 200)
  t.equal(headers['x-many'], 'a, b')
  const found = JSON.parse(text) as { method: string; url: string; body: string; headers: object }
  t.match(found, {
    method: 'POST',
    url: '/path?x=1',
    body: 'words',
    headers: { host: 'a.example:8080', 'x-own': '1', 'proxy-authorization': undefined, 'x-hop': undefined },
  })
  t.same(asked, [{ host: 'a.example', port: 8080 }])
  t.equal((await ask(port, 'http://a.example/missing')).status, 404)
})

t.test('a refused target is 403 with the message, an unreachable one 502, and a relative address 400', async t => {
  const { port } = await behind(t, await web(t))
  t.match(await ask(port, 'http://closed.example/'), { status: 403, text: 'closed.example is not reached\n' })
  t.match(await ask(port, 'http://gone.example/'), {
    status: 502,
    text: /gone\.example:80 could not be asked: nothing is listening there/,
  })
  for (const path of ['/path', 'https://a.example/', 'ftp://a.example/', 'http://user:word@a.example/'])
    t.equal((await ask(port, path)).status, 400, path)
})

t.test('CONNECT joins two connections, or returns the reason for a refusal', async t => {
  const { port, asked } = await behind(t, await web(t))
  const through = (target: string) =>
    talk(
      port,
      Buffer.from(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n\r\n`),
      Buffer.from('GET /in HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'),
    ).then(String)
  t.match(await through('[fd00::1]:443'), /^HTTP\/1\.1 200 .*"url":"\/in"/s)
  t.same(asked, [{ host: 'fd00::1', port: 443 }])
  t.match(await through('closed.example:443'), /^HTTP\/1\.1 403 .*\r\n\r\nclosed\.example is not reached\n$/s)
  t.match(await through('a.example'), /^HTTP\/1\.1 400 /)
})

t.test('SOCKS5 connects to names and addresses, and answers other requests with its error codes', async t => {
  const { port, asked } = await behind(t, await web(t))
  const hello = Buffer.from([5, 1, 0])
  const get = Buffer.from('GET /in HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  const name = (host: string, command = 1) =>
    Buffer.concat([Buffer.from([5, command, 0, 3, host.length]), Buffer.from(host), Buffer.from([0, 80])])
  t.match(String(await talk(port, hello, name('a.example'), get)), /"url":"\/in"/)
  t.match(
    String(await talk(port, Buffer.concat([hello, Buffer.from([5, 1, 0, 1, 10, 0, 0, 1, 0, 80]), get]))),
    /"url":"\/in"/,
    'also sent at once',
  )
  t.match(
    String(
      await talk(
        port,
        hello,
        Buffer.concat([Buffer.from([5, 1, 0, 4, 0xfd]), Buffer.alloc(14), Buffer.from([1, 0, 80])]),
        get,
      ),
    ),
    /"url":"\/in"/,
  )
  t.same(asked, [
    { host: 'a.example', port: 80 },
    { host: '10.0.0.1', port: 80 },
    { host: 'fd00::1', port: 80 },
  ])
  const code = async (...said: Buffer[]) => (await talk(port, ...said))[3]
  t.equal(await code(hello, name('closed.example')), 2, 'not allowed by ruleset')
  t.equal(await code(hello, name('gone.example')), 5, 'connection refused')
  t.equal(await code(hello, name('a.example', 2)), 7, 'command not supported')
  t.equal(await code(hello, Buffer.from([5, 1, 0, 9, 0, 0])), 8, 'address type not supported')
  t.same(await talk(port, Buffer.from([5, 1, 2])), Buffer.from([5, 255]), 'only without authentication')
  t.same(
    await talk(port, Buffer.from([4, 1, 0, 80, 1, 2, 3, 4, 0])).then(({ length }) => length < 200),
    true,
    'an older SOCKS version is refused',
  )
})
