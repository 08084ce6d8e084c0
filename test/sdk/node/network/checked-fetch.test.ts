import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { checkedFetch } from '../../../../sdk/node/network/checked-fetch.js'

const METHODS = { GET: 2, PUT: 2, DELETE: 2, POST: 1, PATCH: 1 }

for (const [method, times] of Object.entries(METHODS))
  t.test(`a ${method} whose kept connection breaks is sent ${times === 1 ? 'once' : 'again'}`, async t => {
    const seen: string[] = []
    const connections = new Set<unknown>()
    const server = createServer((request, response) => {
      const begins = !connections.has(request.socket)
      connections.add(request.socket)
      if (request.url === '/do') seen.push(request.method!)
      const breaks = times === 1 ? seen.length === 1 : !begins
      if (request.url === '/do' && breaks) request.socket.resetAndDestroy()
      else response.end('done')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close().closeAllConnections())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const ask = checkedFetch(async () => ({ near: true, listeners: [] }))
    await (await ask(`${url}/first`)).text()
    const asked = ask(`${url}/do`, { method, ...(method === 'GET' ? {} : { body: '{}' }) })
    if (times === 1) await t.rejects(asked)
    else t.equal(await (await asked).text(), 'done')
    t.same(seen, Array(times).fill(method))
  })
