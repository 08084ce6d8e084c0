import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { Frame } from '../../plugins/agent/contract.js'

/** A request as the server received it. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: { readonly [key: string]: unknown }
}

export type Answerer = (seen: Seen, response: ServerResponse) => unknown

/**
 * A small server with the wire format of the contract: the result of a handler is the JSON answer, unless it wrote one
 * itself.
 */
export const wireServer = async (t: Pick<Test, 'teardown'>, answer: Answerer) => {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const [path = '', query = ''] = request.url!.split('?')
    const one = {
      method: request.method!,
      path,
      query: new URLSearchParams(query),
      headers: request.headers,
      body: text ? JSON.parse(text) : {},
    }
    seen.push(one)
    const value = await answer(one, response)
    if (value !== undefined) json(response, 200, value)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: () => server.closeAllConnections(),
  }
}

/** Answers with a status and a JSON body. */
export const json = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: { [name: string]: string } = {},
): void => {
  response
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
    .end(JSON.stringify(body))
}

/** The wire bytes of one event. */
export const wire = (event: string, data: unknown, id = ''): string =>
  `${id && `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`

/** The wire bytes of a run watched after a position, to its end. */
export const runBytes = (run: string, frames: readonly Frame[], after = 0): string =>
  [
    wire('message', { kind: 'attached', run, prompt: 'p', startedAt: 1, seq: frames.length }),
    ': \n\n',
    ...frames
      .map((event, index) => wire('message', { kind: 'frame', seq: index + 1, event }, `${run}:${index + 1}`))
      .slice(after),
    wire('message', { kind: 'end' }),
    wire('done', { run, reason: 'completed' }),
  ].join('')

/** Starts an event stream. */
export const streaming = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
