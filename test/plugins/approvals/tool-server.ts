import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** A call of a tool as the server received it. */
export interface ToolReceived {
  readonly name: string
  readonly arguments: { readonly [field: string]: unknown }
  readonly _meta?: { readonly idempotencyKey?: string }
}

/** A server of the Model Context Protocol over HTTP that keeps each call of its tools. */
export const toolServer = async (t: Test, names: readonly string[]) => {
  const received: ToolReceived[] = []
  /** What becomes of a call: `cut` ends the connection without an answer. */
  const state: { next: 'answer' | 'fail' | 'cut'; asked: number } = { next: 'answer', asked: 0 }
  const tools = names.map(name => ({ name, description: name, inputSchema: { type: 'object' } }))
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    state.asked++
    const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString('utf8'))
    if (id === undefined) return void response.writeHead(202).end()
    if (method === 'tools/call') {
      received.push(params)
      if (state.next === 'cut') return void response.destroy()
    }
    const failed = state.next === 'fail'
    const results: { [method: string]: object } = {
      initialize: {
        ...{ protocolVersion: params?.protocolVersion, capabilities: { tools: {} } },
        serverInfo: { name: 'board', version: '1' },
      },
      'tools/list': { tools },
      'tools/call': {
        isError: failed,
        content: [{ type: 'text', text: failed ? 'the board is full' : 'posted as 17' }],
      },
    }
    const answer = { jsonrpc: '2.0', id, result: results[method] ?? {} }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { received, state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` }
}
