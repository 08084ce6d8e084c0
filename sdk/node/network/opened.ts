import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as secured, TLSSocket } from 'node:tls'
import { trustedContext, type Authority } from './authority.js'
import type { BoundTraffic } from './bound-traffic.js'
import { forward, endWrong, answerWrong, wrongOf } from './forwarding.js'
import type { Dial, Target } from './policy.js'
import { splice } from './splice.js'
import { ignored } from '../../ignored.js'

const HANDSHAKE = 0x16
const HANDSHAKE_MS = 60_000
const FIRST_LINE = /^[A-Z]{3,16} /

interface Opened {
  readonly target: Target
  readonly secure: boolean
  readonly agent: Agent
  readonly connect: () => Promise<Socket>
}

/** What opened connections stand on. */
export interface OpenedDeps {
  readonly dial: Dial
  readonly bound: () => BoundTraffic | undefined
  /** Whom the programs inside trust. */
  readonly authority: () => Promise<Authority>
}

/** The connections to hosts that values are bound to: TLS ends here, and values are put into the requests. */
export class OpenedConnections {
  readonly #deps: OpenedDeps
  readonly #http: Server
  readonly #opened = new WeakMap<Duplex, Opened>()

  constructor(deps: OpenedDeps) {
    this.#deps = deps
    this.#http = createServer({ keepAlive: true, noDelay: true, headersTimeout: HANDSHAKE_MS, requestTimeout: 0 })
    this.#http.on('request', (asked: IncomingMessage, answer: ServerResponse) => this.#forward(asked, answer))
    this.#http.on(
      'upgrade',
      (asked: IncomingMessage, socket: Duplex, head: Buffer) => void this.#raw(asked, socket, head),
    )
    this.#http.on(
      'clientError',
      (_, socket) => void socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n'),
    )
  }

  /** Joins a program with a host; what it says there is looked at when it speaks HTTP. */
  async serve(socket: Socket, far: Socket, target: Target): Promise<void> {
    const first = await firstWords(socket, far)
    if (socket.destroyed || far.destroyed) {
      socket.destroy()
      far.destroy()
    } else if (first?.[0] === HANDSHAKE) await this.#secure(socket, far, target)
    else if (first && FIRST_LINE.test(first.subarray(0, 20).toString('latin1'))) this.#take(socket, far, target, false)
    else splice(socket, far)
  }

  async #secure(socket: Socket, far: Socket, target: Target): Promise<void> {
    try {
      const authority = await this.#deps.authority()
      const inside = new TLSSocket(socket, {
        isServer: true,
        secureContext: await authority.contextOf(target.host),
        ALPNProtocols: ['http/1.1'],
      })
      inside.on('error', () => inside.destroy())
      inside.once('close', () => socket.destroy())
      this.#take(inside, far, target, true)
    } catch (error) {
      socket.destroy()
      far.destroy()
      throw error
    }
  }

  #take(socket: Socket, far: Socket, target: Target, secure: boolean): void {
    let ready: Socket | undefined = far
    const connect = async () => {
      const raw = ready && !ready.destroyed ? ready : await this.#deps.dial(target)
      ready = undefined
      if (!secure) return raw
      return secured({
        socket: raw,
        secureContext: trustedContext(),
        ...(isIP(target.host) ? { host: target.host } : { servername: target.host }),
        ALPNProtocols: ['http/1.1'],
      })
    }
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    agent.createConnection = (_, done) => {
      connect().then(
        made => done?.(null, made),
        (error: unknown) => done?.(error as Error, undefined as never),
      )
      return undefined
    }
    this.#opened.set(socket, { target, secure, agent, connect })
    socket.once('close', () => {
      agent.destroy()
      ready?.destroy()
    })
    this.#http.emit('connection', socket)
    socket.resume()
  }

  #forward(asked: IncomingMessage, answer: ServerResponse): void {
    const { target, secure, agent } = this.#opened.get(asked.socket)!
    const bound = this.#deps.bound()
    const onward = {
      target,
      secure,
      path: asked.url ?? '/',
      host: asked.headers.host ?? '',
      connection: { agent },
      ...(bound && { bound }),
    }
    forward(asked, answer, onward).catch(error => answerWrong(answer, wrongOf(error, target)))
  }

  /** What becomes another protocol goes on as it is, with its placeholders. */
  async #raw(asked: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { target, connect } = this.#opened.get(asked.socket)!
    socket.on('error', ignored('its close follows'))
    try {
      const far = await connect()
      const lines = asked.rawHeaders.map((text, at) => (at % 2 ? `${text}\r\n` : `${text}: `)).join('')
      far.write(`${asked.method} ${asked.url} HTTP/1.1\r\n${lines}\r\n`, 'latin1')
      if (head.length) socket.unshift(head)
      splice(socket, far)
    } catch (error) {
      endWrong(socket, wrongOf(error, target))
    }
  }
}

/** What a program says first, which stays to be read; undefined: the host speaks first, or it says nothing. */
const firstWords = (socket: Socket, far: Socket): Promise<Buffer | undefined> =>
  new Promise(resolve => {
    const over = (first?: Buffer) => {
      clearTimeout(late)
      for (const one of [socket, far]) for (const event of ['readable', 'end', 'close'] as const) one.off(event, look)
      resolve(first)
    }
    const look = () => {
      const first = socket.read() as Buffer | null
      if (first) socket.unshift(first)
      if (first || far.readableLength > 0 || [socket, far].some(one => one.destroyed || one.readableEnded))
        over(first ?? undefined)
    }
    const late = setTimeout(() => over(), HANDSHAKE_MS)
    for (const one of [socket, far]) for (const event of ['readable', 'end', 'close'] as const) one.on(event, look)
    look()
  })
