import { Agent, createServer, ServerResponse, STATUS_CODES, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { once } from 'node:events'
import { createProxyServer, type ProxyServer } from 'httpxy'
import { answerBody, FOREIGN_PAGE, UNKNOWN_NAME, type ProxyAnswer } from './pages.js'
import { mayPass, outsideLocation, requestedHost, rewriteHead } from './request-head.js'

const MOST_CONNECTIONS = 2_048
const MOST_TO_ONE = 256

/** A server behind a preview. */
export interface PreviewServer {
  /** Its own port, which it is asked with. */
  readonly port: number
  readonly https: boolean
  /** A connection to it; throws a PreviewFault where it is gone. */
  connect(): Promise<Socket>
}

/** A preview cannot be shown; the answer says why. */
export class PreviewFault extends Error {
  readonly answer: ProxyAnswer

  constructor(answer: ProxyAnswer) {
    super(answer.title)
    this.answer = answer
  }
}

/** What stands behind the host names of previews. */
export interface PreviewDirectory {
  /** The scheme of the addresses of previews. */
  readonly scheme: 'http:' | 'https:'
  /** The name of the preview at a host name; undefined: there is none. */
  find(host: string): string | undefined
  /** The server behind a preview; throws a PreviewFault where there is none. */
  open(name: string): Promise<PreviewServer>
}

/** Connections to one server, which are kept for further requests. */
class ServerAgent extends Agent {
  server: PreviewServer
  readonly #held = new Set<Duplex>()

  constructor(server: PreviewServer) {
    super({ keepAlive: true, maxSockets: MOST_TO_ONE, maxFreeSockets: 16 })
    this.server = server
  }

  override createConnection(
    _options: unknown,
    done?: (error: Error | null, socket: Duplex) => void,
  ): Duplex | null | undefined {
    this.#connect().then(
      socket => {
        this.#held.add(socket.once('close', () => this.#held.delete(socket)))
        done?.(null, socket)
      },
      (error: Error) => done?.(error, undefined as never),
    )
    return undefined
  }

  end(): void {
    this.destroy()
    for (const socket of this.#held) socket.destroy()
  }

  async #connect(): Promise<Duplex> {
    const { https } = this.server
    const socket = await this.server.connect()
    if (!https) return socket
    // A development server makes its own certificate; the connection does not leave the machine.
    const tls = connectTls({
      ...{ socket, servername: 'localhost', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] },
    })
    socket.once('close', () => tls.destroy())
    await once(tls, 'secureConnect')
    return tls
  }
}

/** The listener of previews: it picks the server by host name, and passes requests, upgrades and streams on to it. */
export class PreviewListener {
  readonly #directory: PreviewDirectory
  readonly #server: Server
  readonly #proxy: ProxyServer
  readonly #agents = new Map<string, ServerAgent>()
  readonly #answers = new Map<string, Set<Duplex | ServerResponse>>()
  readonly #outside = new WeakMap<IncomingMessage, { readonly outside: string; readonly port: number }>()

  constructor(directory: PreviewDirectory) {
    this.#directory = directory
    this.#proxy = createProxyServer({ cookieDomainRewrite: { localhost: '' } })
    this.#proxy.on('error', (error, req, to) => req && this.#failed(error, req, to as ServerResponse | Socket))
    this.#proxy.on('proxyRes', (answer, req) => {
      const { location } = answer.headers
      const known = this.#outside.get(req)
      if (location !== undefined && known)
        answer.headers.location = outsideLocation(location, known.port, known.outside)
    })
    this.#proxy.on('proxyReqWs', (asked, _req, near) => {
      asked.once('upgrade', (_answer, far: Duplex) => {
        far.once('close', () => near.destroy())
        near.once('close', () => far.destroy())
      })
    })
    this.#server = createServer(
      {
        maxHeaderSize: 65_536,
        headersTimeout: 10_000,
        connectionsCheckingInterval: 1_000,
        requestTimeout: 0,
        // Other upgrades may be ignored (RFC 9110, section 7.8).
        shouldUpgradeCallback: ({ method, headers }) =>
          method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket',
      },
      (req, res) => void this.#serve(req, res),
    )
    this.#server.maxConnections = MOST_CONNECTIONS
    this.#server.on('upgrade', (req, socket, head) => void this.#upgrade(req, socket as Socket, head))
  }

  /** Listens at the first of these ports that is free; resolves with it. */
  async listen(host: string, ports: readonly number[]): Promise<number> {
    for (const port of ports) {
      try {
        this.#server.listen(port, host)
        await once(this.#server, 'listening')
        return (this.#server.address() as AddressInfo).port
      } catch (error) {
        if (port === ports.at(-1)) throw error
      }
    }
    throw new Error('no port was given')
  }

  /** Ends the connections of a preview. */
  cut(name: string): void {
    this.#agents.get(name)?.end()
    this.#agents.delete(name)
    for (const answer of this.#answers.get(name) ?? []) {
      // An answer that has not begun becomes the page that says why.
      if (!(answer instanceof ServerResponse) || answer.headersSent) answer.destroy()
    }
  }

  async close(): Promise<void> {
    for (const name of [...this.#agents.keys(), ...this.#answers.keys()]) this.cut(name)
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const outside = `${this.#directory.scheme}//${req.headers.host}`
    try {
      const { name, server } = await this.#open(req)
      this.#watch(name, res)
      rewriteHead(req, server)
      this.#outside.set(req, { outside, port: server.port })
      await this.#proxy.web(req, res, this.#options(name, server))
    } catch (error) {
      this.#failed(error, req, res)
    }
  }

  async #upgrade(req: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy())
    try {
      const { name, server } = await this.#open(req)
      if (socket.destroyed) return
      this.#watch(name, socket)
      rewriteHead(req, server)
      await this.#proxy.ws(req, socket, this.#options(name, server), head)
    } catch (error) {
      this.#failed(error, req, socket)
    }
  }

  async #open(req: IncomingMessage): Promise<{ name: string; server: PreviewServer }> {
    const host = requestedHost(req)
    const name = host === undefined ? undefined : this.#directory.find(host)
    if (name === undefined) throw new PreviewFault(UNKNOWN_NAME)
    if (!mayPass(req)) throw new PreviewFault(FOREIGN_PAGE)
    return { name, server: await this.#directory.open(name) }
  }

  #options(name: string, server: PreviewServer): { target: string; agent: Agent } {
    let agent = this.#agents.get(name)
    if (agent && (agent.server.https !== server.https || agent.server.port !== server.port)) {
      agent.end()
      agent = undefined
    }
    agent ??= new ServerAgent(server)
    agent.server = server
    this.#agents.set(name, agent)
    return { target: `http://localhost:${server.port}`, agent }
  }

  #watch(name: string, answer: ServerResponse | Socket): void {
    const all = this.#answers.get(name) ?? new Set()
    this.#answers.set(name, all.add(answer))
    answer.once('close', () => {
      if (all.delete(answer) && all.size === 0) this.#answers.delete(name)
    })
  }

  #failed(error: unknown, req: IncomingMessage, to: ServerResponse | Socket): void {
    if (to.destroyed) return
    if (!(error instanceof PreviewFault))
      return this.#failed(new PreviewFault(noAnswer((error as NodeJS.ErrnoException).code ?? 'no answer')), req, to)
    const { headers, body } = answerBody(req, error.answer)
    const { status } = error.answer
    if (to instanceof ServerResponse) {
      if (to.headersSent) return void to.destroy()
      return void to.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
    }
    const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)) })
    const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines.map(([name, value]) => `${name}: ${value}`)]
    to.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  }
}

const noAnswer = (code: string): ProxyAnswer => ({
  status: 502,
  title: 'The program did not answer',
  text: `The connection to it ended (${code}). Look at what the program printed.`,
})
