import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StartError, type Config } from '../config.js'
import type { App } from './app.js'
import type { Connections } from './connections.js'
import { headOf } from './head-lines.js'
import { answerMalformedRequest } from './malformed-request.js'
import { asksSocket } from './sockets.js'

/** The server of the daemon: connections, malformed requests and upgrades, before anything of Koa. */
export const createHttpServer = (app: Pick<App, 'koa' | 'upgrades'>, connections: Connections): Server => {
  const serve = app.koa.callback()
  const server = createServer(
    { maxHeaderSize: 16_384, ...HEADERS, requestTimeout: 0, requireHostHeader: false, ...asksSocket },
    serve,
  )
  app.upgrades.listen(server, serve)
  // Each line of a head counts, and who expects what no server knows is answered like anybody (RFC 9110, section
  // 10.1.1).
  server.maxHeadersCount = 0
  server.on('checkExpectation', serve)
  connections.watch(server)
  answerMalformedRequest(server, headOf)
  return server
}

/** How long a head may take; Node looks at who is late only every 30 s unless told otherwise. */
const HEADERS = { headersTimeout: 10_000, connectionsCheckingInterval: 1000 }

/** Binds the address of the configuration; answers the daemon's own URL. */
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
