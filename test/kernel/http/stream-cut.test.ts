import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { createConnection, createServer, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { daemonWith, type Support } from '../../support/daemon.js'

/** A relay to the daemon that closes both sides normally once a text has passed. */
const cutting = async (t: Test, { url }: Support, after: string): Promise<string> => {
  const relay = createServer(client => {
    const daemon = createConnection(Number(new URL(url).port), '127.0.0.1')
    client.pipe(daemon)
    daemon.on('data', bytes => {
      client.write(bytes)
      if (bytes.includes(after)) client.end(() => daemon.destroy())
    })
    for (const side of [client, daemon]) side.on('error', () => {})
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  t.teardown(() => relay.close())
  return `http://127.0.0.1:${(relay.address() as AddressInfo).port}`
}

const begun = async (t: Test): Promise<Support> => {
  const daemon = await daemonWith(t, ['agent'])
  await daemon.client.call('POST /agent', { conversationId: 'c', prompt: 'say first\nwait 60000' })
  return daemon
}

const attach = ({ session }: Support) => ({
  method: 'POST',
  headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
  body: '{"conversationId":"c"}',
})

t.test('an interrupted stream is an incomplete answer, even if the connection is closed normally', async t => {
  const daemon = await begun(t)
  const url = await cutting(t, daemon, 'first')
  const response = await fetch(`${url}/agent/attach`, attach(daemon))
  t.equal(response.status, 200)
  await t.rejects(response.text(), TypeError)

  const { method, headers, body } = attach(daemon)
  const curl = spawn('curl', [
    '-sN',
    '-X',
    method,
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    '-d',
    body,
    `${url}/agent/attach`,
  ])
  let text = ''
  curl.stdout.on('data', piece => (text += piece))
  const [code] = await once(curl, 'close')
  t.match(text, /"first"/)
  t.equal(code, 18, 'curl reports a partial answer')
})

t.test('a stream that ended is a complete answer, and its connection serves the next request', async t => {
  const daemon = await begun(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const { method, headers, body } = attach(daemon)
  const asked = request(`${daemon.url}/agent/attach`, { method, headers, agent })
  asked.end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  t.equal(response.headers['transfer-encoding'], 'chunked')
  await daemon.client.call('POST /agent/stop', { conversationId: 'c' })
  let text = ''
  for await (const piece of response.setEncoding('utf8')) text += piece
  t.match(text, /event: done/)
  const next = request(`${daemon.url}/health`, { agent })
  next.end()
  const [health] = (await once(next, 'response')) as [IncomingMessage]
  health.resume()
  t.equal(health.statusCode, 200)
  t.ok(next.reusedSocket)
})

t.test('an idle connection still serves a client that is late by a few seconds', async t => {
  const { url } = await daemonWith(t, ['settings'])
  const socket = createConnection(Number(new URL(url).port), '127.0.0.1')
  t.teardown(() => socket.destroy())
  const ask = async () => {
    socket.write(`GET /health HTTP/1.1\r\nhost: ${new URL(url).host}\r\n\r\n`)
    return String((await once(socket, 'data'))[0])
  }
  t.match(await ask(), /^HTTP\/1\.1 200 [^]*\r\nKeep-Alive: timeout=5\r\n/)
  await new Promise(resolve => setTimeout(resolve, 7_500))
  t.match(await ask(), /^HTTP\/1\.1 200 /)
})
