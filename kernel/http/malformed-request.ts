import type { Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** What the reader of requests says is wrong, with the status and the sentence for it. */
const KNOWN: { readonly [code: string]: readonly [status: number, message: string] } = {
  HPE_HEADER_OVERFLOW: [431, 'expected at most 16384 bytes of address and headers, found more'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'expected a body whose chunks have short extensions, found longer ones'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'expected the whole head of a request within 10 s, found a part of it'],
}

/**
 * Gives malformed requests a JSON error body; by default Node answers them with a status alone, or not at all.
 *
 * @param head The head of an answer with a JSON body of so many bytes.
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
    // What was whole is carried out, so its answer is the last one here.
    if (begun && !begun.headersSent && begun.req.complete) return void (begun.shouldKeepAlive = false)
    const [status, message] = KNOWN[error.code ?? ''] ?? [
      400,
      `expected a request of HTTP/1.1, found what cannot be read as one: ${error.reason ?? error.code}`,
    ]
    last(socket, status, message)
  })
  server.on('connect', (_, socket) =>
    last(
      socket.on('error', () => {}),
      405,
      'this sandbox is no proxy: expected a call of its own, found the method CONNECT',
    ),
  )
}
