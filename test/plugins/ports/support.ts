import { on } from 'node:events'
import { request, type IncomingHttpHeaders } from 'node:http'
import { WebSocket } from 'ws'

/** An answer of the preview listener. */
export interface Shown {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Asks a preview as a program does: its name as `Host`, at the loopback address. */
export const show = (
  address: string,
  {
    path = '/',
    method = 'GET',
    headers = {},
    body,
  }: { path?: string; method?: string; headers?: { [name: string]: string }; body?: string } = {},
): Promise<Shown> =>
  new Promise((resolve, reject) => {
    const { host, port } = new URL(address)
    const asked = request(
      { host: '127.0.0.1', port, path, method, agent: false, headers: { host, ...headers } },
      answer => {
        let text = ''
        answer.setEncoding('utf8').on('data', (piece: string) => (text += piece))
        answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, text }))
        answer.on('error', reject)
      },
    )
    asked.on('error', reject)
    asked.end(body)
  })

/** A WebSocket on a preview, with the messages that come. */
export interface ShownSocket {
  readonly socket: WebSocket
  readonly messages: AsyncIterator<[data: unknown]>
}

/** Opens a WebSocket on a preview; resolves with the status where it is refused. */
export const socketAt = (
  address: string,
  { path = '/', origin }: { path?: string; origin?: string } = {},
): Promise<ShownSocket | number> =>
  new Promise((resolve, reject) => {
    const { host, port } = new URL(address)
    const headers = { host, ...(origin !== undefined && { origin }) }
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers })
    const messages = on(socket, 'message')[Symbol.asyncIterator]() as AsyncIterator<[data: unknown]>
    socket.once('open', () => resolve({ socket, messages }))
    socket.once('unexpected-response', (_req, answer) => resolve(answer.statusCode!))
    socket.once('error', reject)
  })
