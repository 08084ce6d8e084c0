import {
  createServer,
  request,
  STATUS_CODES,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import { pipeline, type Duplex } from 'node:stream'
import { Refusal } from '../../refusal.js'
import { SENTENCES } from './outbound.js'
import { codeOf } from '../files/paths.js'
import type { Dial, Target } from './policy.js'
import { serveSocks } from './socks.js'
import { splice } from './splice.js'

const SOCKS5 = 5
const FIRST_BYTE_MS = 60_000
/** Headers of one connection, not of the request (RFC 9110, section 7.6.1). */
const TRAVEL = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'proxy-authorization',
  'proxy-authenticate',
  'expect',
  'host',
])

interface Wrong {
  readonly status: number
  readonly text: string
}

const wrongOf = (error: unknown, target: Target): Wrong => {
  if (error instanceof Refusal) return { status: 403, text: error.message }
  const code = codeOf(error) ?? ''
  const status = code === 'ETIMEDOUT' ? 504 : 502
  return {
    status,
    text: `${target.host}:${target.port} could not be asked: ${SENTENCES[code] ?? (code || String(error))}`,
  }
}

/**
 * The proxy through which a conversation reaches what lies beyond its own network: HTTP with CONNECT and with whole
 * addresses, and SOCKS5, on one port.
 */
export class EgressProxy {
  readonly #dial: Dial
  readonly #http: HttpServer

  constructor(dial: Dial) {
    this.#dial = dial
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
    socket.on('error', () => {})
    socket.setTimeout(FIRST_BYTE_MS, () => socket.destroy())
    socket.once('readable', () => {
      const first = socket.read() as Buffer | null
      if (!first) return void socket.destroy()
      socket.unshift(first)
      if (first[0] === SOCKS5) return void serveSocks(socket, this.#dial).catch(() => socket.destroy())
      socket.setTimeout(0)
      this.#http.emit('connection', socket)
      socket.resume()
    })
  }

  async #tunnel(asked: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => {})
    const target = targetOf(URL.parse(`http://${asked.url ?? ''}`))
    if (!target || !/:\d+$/.test(asked.url ?? ''))
      return said(socket, { status: 400, text: 'expected CONNECT host:port' })
    try {
      const far = await this.#dial(target)
      if (socket.destroyed) return void far.destroy()
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.length) socket.unshift(head)
      splice(socket, far)
    } catch (error) {
      said(socket, wrongOf(error, target))
    }
  }

  async #forward(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const url = URL.parse(asked.url ?? '')
    const target = url?.protocol === 'http:' ? targetOf(url) : undefined
    if (!url || !target)
      return told(answer, {
        status: 400,
        text: 'this is the way out of a conversation: expected a whole http address, or CONNECT host:port',
      })
    try {
      const far = await this.#dial(target)
      if (answer.destroyed) return void far.destroy()
      const sent = request({
        createConnection: () => far,
        method: asked.method ?? 'GET',
        path: `${url.pathname}${url.search}`,
        setHost: false,
        headers: ['host', url.host, ...travelling(asked), 'connection', 'close'],
      })
      sent.once('response', came => {
        answer.writeHead(came.statusCode ?? 502, came.statusMessage, travelling(came))
        pipeline(came, answer, () => far.destroy())
      })
      // It came paused, so that nothing of it is lost.
      sent.once('socket', () => far.resume())
      sent.on('error', error => (answer.headersSent ? void answer.destroy() : told(answer, wrongOf(error, target))))
      answer.once('close', () => far.destroy())
      pipeline(asked, sent, () => {})
    } catch (error) {
      told(answer, wrongOf(error, target))
    }
  }
}

const targetOf = (url: URL | null): Target | undefined => {
  if (!url || url.username || url.password) return undefined
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return host ? { host, port: Number(url.port || 80) } : undefined
}

/** The headers of a message that go on with it. */
const travelling = ({ rawHeaders, headers }: IncomingMessage): string[] => {
  const named = new Set((headers.connection ?? '').split(',').map(name => name.trim().toLowerCase()))
  return rawHeaders.flatMap((name, at) => {
    const key = name.toLowerCase()
    return at % 2 || TRAVEL.has(key) || named.has(key) ? [] : [name, rawHeaders[at + 1] ?? '']
  })
}

const said = (socket: Duplex, { status, text }: Wrong): void => {
  const body = `${text}\n`
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: text/plain; charset=utf-8\r\n`
      + `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

const told = (answer: ServerResponse, { status, text }: Wrong): void => {
  if (answer.destroyed || answer.headersSent) return void answer.destroy()
  answer.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' }).end(`${text}\n`)
}
