import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as secured, TLSSocket } from 'node:tls'
import { trustedContext, type Authority } from './authority.js'
import type { BoundTraffic } from './bound-traffic.js'
import { Masker } from '../access/masker.js'
import { maskedBytes } from './filling.js'
import { forward, endWrong, answerWrong, switchProtocol, wrongOf, type Wrong } from './forwarding.js'
import { hostAndPort, type Target } from './host-form.js'
import type { Dial } from './policy.js'
import { splice } from './splice.js'
import { ignored } from '../../ignored.js'

const HANDSHAKE = 0x16
const HANDSHAKE_MS = 60_000
const FIRST_LINE = /^[A-Z]{3,16} /

interface Opened {
  readonly target: Target
  readonly secure: boolean
  readonly agent: Agent
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
      (asked: IncomingMessage, socket: Duplex, head: Buffer) => void this.#switch(asked, socket, head),
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
    else splice(socket, far, { through: maskedBytes(await this.#masker(target)) })
  }

  async #masker({ host }: Target): Promise<Masker> {
    return (await this.#deps.bound()?.masker(host)) ?? new Masker([])
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
    this.#opened.set(socket, { target, secure, agent })
    socket.once('close', () => {
      agent.destroy()
      ready?.destroy()
    })
    this.#http.emit('connection', socket)
    socket.resume()
  }

  #forward(asked: IncomingMessage, answer: ServerResponse): void {
    const { target, secure, agent } = this.#opened.get(asked.socket)!
    const wrong = misdirected(asked, target)
    if (wrong) return answerWrong(answer, wrong)
    const bound = this.#deps.bound()
    const onward = { target, secure, path: asked.url ?? '/', connection: { agent }, ...(bound && { bound }) }
    forward(asked, answer, onward).catch(error => answerWrong(answer, wrongOf(error, target)))
  }

  async #switch(asked: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { target, secure, agent } = this.#opened.get(asked.socket)!
    socket.on('error', ignored('its close follows'))
    const wrong = misdirected(asked, target)
    if (wrong) return endWrong(socket, wrong)
    const bound = this.#deps.bound()
    const onward = { target, secure, path: asked.url ?? '/', connection: { agent }, ...(bound && { bound }) }
    try {
      // Node types the socket of an upgrade as the stream that it is at least.
      await switchProtocol(asked, socket as Socket, head, onward)
    } catch (error) {
      endWrong(socket, wrongOf(error, target))
    }
  }
}

/** Why a request is not for the host of its connection; undefined: it is. */
const misdirected = ({ url = '', method, headersDistinct }: IncomingMessage, target: Target): Wrong | undefined => {
  if (!url.startsWith('/') && !(method === 'OPTIONS' && url === '*'))
    return { status: 400, text: `expected a path of ${target.host} that begins with /` }
  const other = headersDistinct.host?.find(each => hostAndPort(each, 1)?.host !== target.host)
  return other === undefined
    ? undefined
    : {
        status: 421,
        text: `this connection leads to ${target.host}: expected that as Host, found ${other.slice(0, 200)}`,
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
