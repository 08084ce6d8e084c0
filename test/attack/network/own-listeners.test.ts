import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import t, { type Test } from 'tap'
import { modelFetch } from '../../../plugins/agent/providers/native/model-fetch.js'
import { outgoing } from '../../../sdk/node/models/outgoing.js'
import { declareListeners } from '../../../sdk/node/network/own-listeners.js'
import { daemonWith } from '../../support/daemon.js'

/** A server on every address of the machine that counts who connects. */
const server = async (
  t: Test,
  at = 0,
): Promise<{ port: number; asked: () => number; close: () => Promise<unknown> }> => {
  let asked = 0
  const listener: Server = createServer((request, response) => {
    request.resume()
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model' }] }))
  })
  listener.on('connection', () => (asked += 1))
  listener.listen(at, '::')
  await once(listener, 'listening')
  const close = async () => {
    listener.closeAllConnections()
    if (listener.listening) await once(listener.close(), 'close')
  }
  t.teardown(close)
  return { port: (listener.address() as AddressInfo).port, asked: () => asked, close }
}

/** A program of somebody else that listens. */
const appOfOthers = async (t: Test): Promise<number> => {
  const script =
    "require('http').createServer((_, answer) => answer.end('app'))"
    + ".listen(0, '127.0.0.1', function () { console.log(this.address().port) })"
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return Number(line.toString())
}

const own = Object.values(networkInterfaces()).flatMap(all => all?.filter(({ family }) => family === 'IPv4') ?? [])
/** Ways to name this machine. */
const HOSTS = [
  ...[
    '127.0.0.1',
    'localhost',
    'LOCALHOST.',
    '127.1',
    '127.0.0.2',
    '0x7f000001',
    '2130706433',
    '0177.0.0.1',
    '0.0.0.0',
  ],
  ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:0:0:1]', '[64:ff9b::7f00:1]'],
  ...own.map(({ address }) => address),
]

/** Everything that asks a server that somebody named, by what it is for. */
const DIALLERS: { readonly [what: string]: (url: string) => Promise<unknown> } = {
  'a list of models, a registry, a download': url => outgoing({ url, signal: AbortSignal.timeout(5_000) }),
  'a test of a model server': url =>
    outgoing({ url, method: 'POST', body: {}, signal: AbortSignal.timeout(5_000), redirects: 'secure' }),
  'a turn on a model server': url => modelFetch({})(url, { body: '{}', signal: AbortSignal.timeout(5_000) }),
}

for (const [what, dial] of Object.entries(DIALLERS)) {
  t.test(`what the daemon listens on since a server was named is not asked: ${what}`, async t => {
    const { port, asked } = await server(t)
    const reached: string[] = []
    for (const host of HOSTS) {
      const before = asked()
      await dial(`http://${host}:${port}/v1`).catch(() => undefined)
      if (asked() > before) reached.push(host)
    }
    t.ok(reached.length >= 4, `it answers at ${reached.join(', ')}`)
    const forget = declareListeners(() => [{ host: '127.0.0.1', port }])
    const before = asked()
    for (const host of HOSTS) {
      const error = await dial(`http://${host}:${port}/v1`).then(
        () => ({ message: 'it was asked' }),
        (failed: Error) => failed,
      )
      if (reached.includes(host)) t.match(error.message, /it is this sandbox itself/, host)
    }
    // A connection that was kept from before goes on without another one.
    t.equal(asked(), before, 'no connection was made')
    forget()
    await dial(`http://127.0.0.1:${port}/v1`)
  })
}

t.test('a model server whose address a preview of the daemon takes later is refused', async t => {
  const first = await server(t)
  const { port } = first
  const daemon = await daemonWith(t, ['endpoints', 'ports', 'agent', 'agents', 'capabilities', 'secrets', 'settings'], {
    deployment: { previews: { port } },
  })
  const { client } = daemon
  const baseUrl = `http://127.0.0.1:${port}/v1`
  await client.call('POST /endpoints', {
    ...{ kind: 'server', id: 'late', label: 'Late', protocol: 'openai', baseUrl },
  } as never)
  await first.close()
  await client.call('POST /ports/forward', { port: await appOfOthers(t) })
  t.match(
    JSON.stringify(
      await client.call('POST /endpoints/{id}/test', { id: 'late' }).catch((error: Error) => error.message),
    ),
    /it is this sandbox itself/,
  )
})
