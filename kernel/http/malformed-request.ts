import type { Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { ignored } from '../../sdk/ignored.js'

/** Parser error codes of Node, with the status and message to answer. */
const KNOWN: { readonly [code: string]: readonly [status: number, message: string] } = {
  HPE_HEADER_OVERFLOW: [431, 'expected at most 16384 bytes of request line and headers, found more'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'expected chunk extensions of at most 16384 bytes, found more'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'expected all request headers within 10 s'],
}

/**
 * Gives malformed requests a JSON error body; by default Node answers them with a status alone, or not at all.
 *
 * @param head Returns the head of a JSON answer with this status and content length.
 */
export const answerMalformedRequest = (server: Server, head: (status: number, bytes: number) => string): void => {
  const last = (socket: Duplex, status: number, message: string): void => {
    const body = JSON.stringify({ message, reason: 'invalid' })
    socket.end(head(status, Buffer.byteLength(body)) + body)
  }
  const answering = new WeakMap<Duplex, ServerResponse>()
  server.on('request', ({ socket }, res) => answering.set(socket, res))
  server.on('clientError', (error: NodeJS.ErrnoException & { reason?: string }, socket) => {
    const begun = answering.get(socket)
    if (!socket.writable || error.code === 'ECONNRESET' || (begun?.headersSent && !begun.writableEnded))
      return void socket.destroy()
    if (begun?.headersSent && !begun.shouldKeepAlive) return void socket.end()
    // The complete request before the malformed one is served; its answer closes the connection.
    if (begun && !begun.headersSent && begun.req.complete) return void (begun.shouldKeepAlive = false)
    const [status, message] = KNOWN[error.code ?? ''] ?? [
      400,
      `expected a valid HTTP/1.1 request, found one that has the error: ${error.reason ?? error.code}`,
    ]
    last(socket, status, message)
  })
  server.on('connect', (_, socket) =>
    last(
      socket.on('error', ignored('its close follows')),
      405,
      'this sandbox is not a proxy and does not take the method CONNECT',
    ),
  )
}
