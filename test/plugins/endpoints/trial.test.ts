import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { folderOf } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { endpointsWorld } from './support.js'

const TOKEN = 'trial-bearer-90'

/** A trial's server that says what it is told to. */
const trialServer = async (t: Test) => {
  const said: { status: number; body: object } = { status: 200, body: {} }
  const server = createServer((request, response) => {
    const known = request.headers.authorization === `Bearer ${TOKEN}`
    const list = request.url === '/v1/models'
    response.writeHead(known ? (list ? 200 : said.status) : 401, { 'content-type': 'application/json' })
    response.end(JSON.stringify(list ? { data: [{ id: 'given' }] } : said.body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const stop = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  t.teardown(stop)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, said, stop }
}

t.test('without a trial nothing is available', async t => {
  const { daemon } = await endpointsWorld(t)
  t.same(await daemon.client.call('GET /endpoints/trial/status'), {
    available: false,
    allowance: 0,
    used: 0,
    remaining: 0,
    health: 'unknown',
  })
})

t.test('the trial is what its server says, and is listed while it is available', async t => {
  const server = await trialServer(t)
  const folder = folderOf(t)
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, `${TOKEN}\n`)
  mkdirSync(join(folder, 'w'))
  const { daemon, call } = await endpointsWorld(t, {
    workspace: join(folder, 'w'),
    data: join(folder, 'd'),
    deployment: { models: { trial: { url: server.url, tokenFile } } },
  })
  const status = () => daemon.client.call('GET /endpoints/trial/status')
  server.said.body = {
    allowance: 10,
    used: 4,
    remaining: 6,
    health: 'healthy',
    resetsAt: '2030-01-01T00:00:00Z',
    token: 1,
  }
  t.same(await status(), {
    available: true,
    allowance: 10,
    used: 4,
    remaining: 6,
    health: 'healthy',
    resetsAt: '2030-01-01T00:00:00.000Z',
  })
  const { endpoints } = await daemon.client.call('GET /endpoints')
  t.match(endpoints, exactly({ id: 'free-trial', provider: 'endpoint/free-trial', kind: 'trial', status: 'ready' }))
  t.match(await call('endpoints.target', { id: 'free-trial' }), {
    baseUrl: server.url,
    default: 'given',
    headers: { authorization: `Bearer ${TOKEN}` },
    problem: undefined,
  })
  server.said.body = { allowance: 10, used: 10, remaining: 0, health: 'degraded' }
  await status()
  t.match(await call('endpoints.choices', {} as never), {
    endpoints: exactly({ id: 'free-trial', ready: false, reason: /used up/ }),
  })
  t.match(await refusalOf(() => daemon.client.call('DELETE /endpoints/{id}', { id: 'free-trial' })), { status: 409 })
  server.said.status = 500
  t.match(await status(), { available: true, used: 10 }, 'the last known')
  server.said.status = 404
  t.match(await status(), { available: false, allowance: 0, health: 'unknown' })
  t.same((await daemon.client.call('GET /endpoints')).endpoints, [])
  server.said.status = 200
  await status()
  await server.stop()
  t.match(await status(), { available: true, used: 10 })
  await until(async () => (await daemon.client.call('GET /endpoints')).endpoints.length === 1)
})
