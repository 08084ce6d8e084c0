import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { TOOLS_PATH, ToolServers } from '../../../plugins/agent/tool-server/tool-servers.js'
import { exactly } from '../../support/lists.js'

/** A tool server that listens, what it logged, and what a program with a token of it is answered. */
const world = async (t: Test, protocol?: ConstructorParameters<typeof ToolServers>[1]) => {
  const logged: [message: string, fields?: object][] = []
  const servers = new ToolServers({ error: (...line) => void logged.push(line) }, protocol)
  const { server } = servers
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    servers.close()
    server.close()
  })
  const { token } = servers.open()
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${TOOLS_PATH}`
  const ask = () =>
    fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'mcp-protocol-version': '2025-06-18',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    })
  return { ask, logged }
}

t.test('a program is answered by the tool server', async t => {
  const { ask, logged } = await world(t)
  const answer = await ask()
  t.equal(answer.status, 200)
  t.match(await answer.text(), /"tools":\[\]/)
  t.same(logged, [])
})

t.test('a program learns that the tool server failed, and the log says why', async t => {
  for (const [what, protocol] of [
    ['loading it failed', async () => Promise.reject(new Error('boom'))],
    ['a request failed', async () => ({ fetch: async () => Promise.reject(new Error('boom')) }) as never],
  ] as const) {
    const { ask, logged } = await world(t, protocol)
    const answer = await ask()
    t.equal(answer.status, 500, what)
    t.match(await answer.json(), { jsonrpc: '2.0', id: null, error: { code: -32603, message: /tool server failed/ } })
    t.match(logged, exactly(exactly('the tool server failed', { error: 'Error: boom' })))
  }
})
