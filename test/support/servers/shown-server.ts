// A program with servers, for tests of what the sandbox shows of them: each line of its input is an order of JSON, each
// line of its output the answer. Started by shown-servers.ts, or by `node` in a terminal with the orders as arguments.
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createPlainServer, type AddressInfo, type Server } from 'node:net'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { WebSocketServer } from 'ws'

/** What the program is asked for. */
export type ServerOrder =
  | { readonly listen: string; readonly port?: number; readonly page?: string; readonly tls?: string }
  | { readonly listen: string; readonly port?: number; readonly silent: true }
  | { readonly close: number }

const servers = new Map<number, Server>()

const headOf = ({ method, url, headers }: IncomingMessage): string => JSON.stringify({ method, url, headers })

const answering =
  (page: string): RequestListener =>
  (req, res) => {
    if (req.url === '/head') return void res.end(headOf(req))
    if (req.url === '/away')
      return void res
        .writeHead(302, {
          location: `http://${req.headers.host}/there?x=1`,
          'set-cookie': 'a=1; Domain=localhost; Path=/',
        })
        .end()
    if (req.url === '/echo') return void req.pipe(res)
    if (req.url?.startsWith('/events')) {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      let sent = 0
      const timer = setInterval(() => res.write(`data: ${++sent}\n\n`), 50)
      return void res.on('close', () => clearInterval(timer))
    }
    res.setHeader('content-type', 'text/html')
    res.end(page)
  }

const open = (order: Exclude<ServerOrder, { close: number }>): Promise<number> =>
  new Promise((resolve, reject) => {
    const plain = 'silent' in order
    const page = plain ? '' : (order.page ?? 'hello')
    const tls = plain ? undefined : order.tls
    const server: Server = plain
      ? createPlainServer(() => {})
      : tls
        ? createTlsServer(
            { key: readFileSync(`${tls}/key.pem`), cert: readFileSync(`${tls}/cert.pem`) },
            answering(page),
          )
        : createServer(answering(page))
    if (!plain)
      new WebSocketServer({ server: server as ReturnType<typeof createServer> }).on('connection', (socket, req) => {
        if (req.url === '/head') socket.send(headOf(req))
        socket.on('message', data => socket.send(String(data)))
      })
    server.once('error', reject)
    server.listen(order.port ?? 0, order.listen, () => {
      const { port } = server.address() as AddressInfo
      servers.set(port, server)
      resolve(port)
    })
  })

const close = (port: number): Promise<number> =>
  new Promise(resolve => {
    const server = servers.get(port)
    server?.close(() => resolve(port))
    ;(server as ReturnType<typeof createServer> | undefined)?.closeAllConnections?.()
  })

const obey = async (line: string): Promise<void> => {
  const order = JSON.parse(line) as ServerOrder
  const port = await ('close' in order ? close(order.close) : open(order))
  process.stdout.write(`${port}\n`)
}

for (const order of process.argv.slice(2)) await obey(order)
createInterface(process.stdin)
  .on('line', line => void obey(line).catch(error => process.stdout.write(`${error}\n`)))
  // The test that started it is gone.
  .on('close', () => process.exit())
