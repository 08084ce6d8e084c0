import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { BoundTraffic } from './bound-traffic.js'
import { forward, endWrong, answerWrong, wrongOf } from './forwarding.js'
import { hostAndPort, type Target } from './host-form.js'
import { OpenedConnections, type OpenedDeps } from './opened.js'
import { HOST_FORM, type Dial } from './policy.js'
import { serveSocks } from './socks.js'
import { splice } from './splice.js'
import { proxyBehind } from './upstream.js'
import { ignored } from '../../ignored.js'

const SOCKS5 = 5
const FIRST_BYTE_MS = 60_000
const USUAL_PORT = 80
/** The target of a request to a proxy: what names the host, and the rest without a fragment. */
const ABSOLUTE = /^http:\/\/([^/?#]+)([^#]*)/i

/**
 * The proxy through which a conversation reaches what lies beyond its own network: HTTP with CONNECT and with whole
 * addresses, and SOCKS5, on one port.
 */
export class EgressProxy {
  readonly #dial: Dial
  readonly #http: HttpServer
  readonly #what: string
  readonly #bound: () => BoundTraffic | undefined
  readonly #opened: OpenedConnections | undefined

  /**
   * @param opening What opens connections to hosts that values are bound to; left out: none is.
   * @param what What a client that asks for no proxy is told.
   */
  constructor(dial: Dial, opening?: Omit<OpenedDeps, 'dial'>, what = 'this is the way out of a conversation') {
    this.#dial = dial
    this.#what = what
    this.#bound = opening?.bound ?? (() => undefined)
    this.#opened = opening && new OpenedConnections({ dial, ...opening })
    this.#http = createServer({ keepAlive: true, noDelay: true, headersTimeout: FIRST_BYTE_MS, requestTimeout: 0 })
    this.#http.on('request', (asked: IncomingMessage, answer: ServerResponse) => void this.#forward(asked, answer))
    this.#http.on(
      'connect',
      (asked: IncomingMessage, socket: Duplex, head: Buffer) => void this.#tunnel(asked, socket, head),
    )
    this.#http.on(
      'clientError',
      (_, socket) => void socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n'),
    )
  }

  /** Serves one connection: what it speaks shows in its first byte. */
  serve(socket: Socket): void {
    socket.on('error', ignored('its close follows'))
    socket.setTimeout(FIRST_BYTE_MS, () => socket.destroy())
    socket.once('readable', () => {
      const first = socket.read() as Buffer | null
      if (!first) return void socket.destroy()
      socket.unshift(first)
      if (first[0] === SOCKS5) return void serveSocks(socket, this.#dial, this.#join).catch(() => socket.destroy())
      socket.setTimeout(0)
      this.#http.emit('connection', socket)
      socket.resume()
    })
  }

  async #tunnel(asked: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', ignored('its close follows'))
    const target = hostAndPort(asked.url ?? '')
    if (!target) return endWrong(socket, { status: 400, text: `expected CONNECT host:port with ${HOST_FORM}` })
    try {
      const far = await this.#dial(target)
      if (socket.destroyed) return void far.destroy()
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.length) socket.unshift(head)
      this.#join(socket, far, target)
    } catch (error) {
      endWrong(socket, wrongOf(error, target))
    }
  }

  async #forward(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const [, authority = '', rest = ''] = ABSOLUTE.exec(asked.url ?? '') ?? []
    const target = hostAndPort(authority, USUAL_PORT)
    if (!target)
      return answerWrong(answer, {
        status: 400,
        text: `${this.#what}: expected a whole http address, or CONNECT host:port, with ${HOST_FORM}`,
      })
    try {
      const far = await this.#dial(target, 'plain')
      const proxy = proxyBehind(far)
      if (answer.destroyed) return void far.destroy()
      answer.once('close', () => far.destroy())
      const bound = this.#bound()
      await forward(asked, answer, {
        target,
        secure: false,
        path: rest.startsWith('/') ? rest : `/${rest}`,
        connection: { createConnection: () => far },
        ...(proxy && { proxy }),
        ...(bound && { bound }),
      })
    } catch (error) {
      answerWrong(answer, wrongOf(error, target))
    }
  }

  /** Both ends, once they are connected. */
  readonly #join = (socket: Duplex, far: Socket, target: Target): void => {
    // Node types the socket of CONNECT as the stream that it is at least.
    if (this.#opened && this.#bound()?.opens(target.host))
      void this.#opened.serve(socket as Socket, far, target).catch(() => socket.destroy())
    else splice(socket, far)
  }
}
