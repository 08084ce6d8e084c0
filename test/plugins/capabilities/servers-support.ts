import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createHttpServer, request as ask } from 'node:http'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { ToolAnswered, ToolAsked, ToolElicits, ToolProgress } from '../../../plugins/capabilities/contract.js'
import { root, type Support } from '../../support/daemon.js'
import { inner } from './support.js'

/** A real server of the Model Context Protocol, as npm installs it. */
export const realServer = (name: string): string =>
  join(root, `../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`)

export const TURN = { conversationId: 'c', run: 'r-1' }

type Event = ToolProgress | ToolElicits | ToolAnswered

/** Calls a tool in a turn and answers all that it gave; `heard` gets each event as it comes. */
export const callTool = async (
  daemon: Support,
  asked: Omit<ToolAsked, 'conversationId' | 'run'> & Partial<ToolAsked>,
  heard: (event: Event) => void = () => {},
  signal?: AbortSignal,
): Promise<Event[]> => {
  const events: Event[] = []
  for await (const event of await inner(daemon, 'mcp.call', { ...TURN, ...asked }, signal)) {
    events.push(event)
    heard(event)
  }
  return events
}

/** The result of a call of a tool. */
export const resultOf = async (
  daemon: Support,
  asked: Omit<ToolAsked, 'conversationId' | 'run'> & Partial<ToolAsked>,
): Promise<ToolAnswered> => {
  const last = (await callTool(daemon, asked)).at(-1)
  if (last?.kind !== 'result') throw new Error('the call ended without a result')
  return last
}

/** A port that nothing listens on. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** The server with everything over streamable HTTP, or the older transport; answers its address and how to end it. */
export const httpServer = async (
  t: Test,
  mode: 'streamableHttp' | 'sse' = 'streamableHttp',
  port?: number,
): Promise<{ url: string; port: number; end: () => Promise<void> }> => {
  const at = port ?? (await freePort())
  const child = spawn(process.execPath, [realServer('everything'), mode], {
    env: { ...process.env, PORT: String(at), NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  t.teardown(end)
  for (;;) {
    const up = await fetch(`http://127.0.0.1:${at}/`).then(
      () => true,
      () => false,
    )
    if (up) break
    if (child.exitCode !== null) throw new Error('the server did not start')
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  return { url: `http://127.0.0.1:${at}/${mode === 'sse' ? 'sse' : 'mcp'}`, port: at, end }
}

/** Stands before a server over HTTP, and cuts its first event stream of an answer after the first event. */
export const cuttingProxy = async (
  t: Test,
  to: string,
): Promise<{ url: string; readonly resumed: readonly string[] }> => {
  const resumed: string[] = []
  let cuts = 1
  const proxy = createHttpServer((request, response) => {
    // What is about this connection alone is not passed on (RFC 9110, section 7.6.1).
    const { connection: _connection, ...headers } = request.headers
    const { method } = request
    const from = headers['last-event-id']
    if (typeof from === 'string') resumed.push(from)
    const onward = ask(to, { method, headers: { ...headers, host: new URL(to).host } }, answer => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.on('data', (piece: Buffer) => {
        response.write(piece)
        const isProgress = method === 'POST' && piece.includes('notifications/progress')
        if (isProgress && cuts-- > 0) response.destroy()
      })
      answer.on('end', () => response.end())
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    proxy.close()
    proxy.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`, resumed }
}
