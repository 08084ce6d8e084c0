import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Config } from '../config/config.js'
import { StartError } from '../config/start-error.js'
import type { App } from './app.js'
import type { Connections } from './connections.js'
import { headOf } from './head-lines.js'
import { answerMalformedRequest } from './malformed-request.js'
import { asksSocket } from './sockets/sockets.js'

/** Creates the daemon's server: connection limits, malformed requests and upgrades; Koa serves the rest. */
export const createHttpServer = (app: Pick<App, 'callback' | 'upgrades'>, connections: Connections): Server => {
  const serve = app.callback()
  const server = createServer(
    { maxHeaderSize: 16_384, ...HEADERS, ...IDLE, requestTimeout: 0, requireHostHeader: false, ...asksSocket },
    serve,
  )
  app.upgrades.listen(server, serve)
  // No limit on the number of headers, so that none is silently dropped; unknown `expect` values are ignored (RFC 9110,
  // section 10.1.1).
  server.maxHeadersCount = 0
  server.on('checkExpectation', serve)
  connections.watch(server)
  answerMalformedRequest(server, headOf)
  return server
}

/** The time limit for request headers, checked each second; by default Node checks only every 30 s. */
const HEADERS = { headersTimeout: 10_000, connectionsCheckingInterval: 1000 }

/**
 * Clients are told that an idle connection ends after 5 s, and it ends 10 s later: a client on a busy machine, which
 * notices late that the time is over, would otherwise send a request into a connection that is being closed.
 */
const IDLE = { keepAliveTimeout: 5_000, keepAliveTimeoutBuffer: 10_000 }

/** Listens at the configured address; resolves with the daemon's URL. */
export const listen = (server: Server, { host, port }: Config): Promise<string> =>
  new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const words =
        error.code === 'EADDRINUSE'
          ? 'is in use by another program: stop it, or choose another with --port'
          : `cannot be listened on: ${error.code}`
      reject(new StartError(`port ${port} of ${host} ${words}`))
    })
    server.listen(port, host, () => {
      const { port: bound } = server.address() as AddressInfo
      resolve(`http://${host.includes(':') ? `[${host}]` : host}:${bound}`)
    })
  })
