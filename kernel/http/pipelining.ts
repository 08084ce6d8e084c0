import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestStep } from './request.js'

/**
 * Serves the requests of one connection in order (HTTP pipelining, RFC 9112, section 9.3.2), each after the previous
 * answer was sent: a client that pipelines without reading would make the server buffer every answer.
 */
export const serveInTurn =
  (): RequestStep =>
  ({ req, res }, next) =>
    res.socket ? next() : turnOf(req, res).then(() => (req.socket.destroyed ? undefined : next()))

/** Resolves when the previous answer was sent, upon which Node gives this one its socket, or the connection closed. */
const turnOf = (req: IncomingMessage, res: ServerResponse): Promise<void> =>
  new Promise(resolve => {
    res.once('socket', () => resolve())
    req.once('close', resolve)
  })
