import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { ApprovalStatus } from '../../../plugins/approvals/contract.js'
import type { Client } from '../../../sdk/client.js'

/** One request as a server outside received it. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A server that keeps every request and answers each with `answer`; `undefined`: it never answers. */
export const hookServer = async (t: Test) => {
  const received: Received[] = []
  const state: { answer: { status: number; headers?: { [name: string]: string }; body?: string } | undefined } = {
    answer: { status: 200, body: 'taken' },
  }
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      received.push({ method, path: url, headers, body: Buffer.concat(pieces).toString('latin1') })
      const { answer } = state
      if (answer) response.writeHead(answer.status, answer.headers).end(answer.body)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const closeAll = () => server.closeAllConnections()
  return { received, state, closeAll, port, url: `http://127.0.0.1:${port}/hook` }
}

/** Waits until an item has one of these states, and returns it. */
export const itemIn = async (client: Client, id: string, ...statuses: ApprovalStatus[]) => {
  for (let tries = 0; tries < 500; tries++) {
    const { approvals } = await client.call('GET /approvals', {})
    const item = approvals.find(each => each.id === id)
    if (item && statuses.includes(item.status)) return item
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  throw new Error(`${id} did not become ${statuses.join(' or ')}`)
}
