import { createServer, request as askServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type LookupFunction, type Socket } from 'node:net'
import { pipeline, type Duplex } from 'node:stream'
import { Refusal, refuse, ignored } from '../../../sdk/index.js'
import { addressKind, plainAddress } from '../../../sdk/node/network/addresses.js'
import { isMetadataName } from '../../../sdk/node/network/allow.js'
import { normalHost } from '../../../sdk/node/network/host-form.js'
import {
  isNearName,
  judge,
  judgeName,
  sentenceOf,
  type NetworkReach,
  type NetworkRules,
} from '../../../sdk/node/network/policy.js'
import {
  connectUpstream,
  refusedByProxy,
  tunnel,
  upstreamHeaders,
  type UpstreamProxy,
} from '../../../sdk/node/network/upstream.js'
import { SENTENCES } from '../../../sdk/node/network/failure-words.js'
import { lookupOf } from '../../../sdk/node/network/names.js'
import { isOwnLoopback, wayTo } from '../../../sdk/node/network/outbound.js'

/** Why a server was not reached: forbidden, or no answer. */
export interface GateFailure {
  readonly barred: boolean
  readonly why: string
}

/** The way to a server that was checked. */
interface Way {
  readonly host: string
  readonly port: number
  readonly lookup: LookupFunction
  /** A connection to the conversation's own loopback, paused. */
  readonly own?: Socket
  /** The proxy of the deployment that leads there. */
  readonly proxy?: UpstreamProxy
}

const MOST_FAILURES = 200
/** Hop-by-hop headers, which are not forwarded. */
const HOP_BY_HOP = /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i

/**
 * The only way out of a browser: a proxy that resolves names itself, checks every address, and connects to a checked
 * one.
 *
 * It closes the connection without a byte if the target is refused or does not answer, so that pages see only a network
 * error.
 */
export class Gate {
  /** The port it listens on. */
  port = 0
  readonly #server: Server
  readonly #reach: () => Promise<NetworkReach>
  readonly #exit: UpstreamProxy | undefined
  readonly #failures = new Map<string, GateFailure>()
  readonly #open = new Set<Duplex>()
  readonly #closing = new AbortController()

  private constructor(reach: () => Promise<NetworkReach>, exit: UpstreamProxy | undefined) {
    this.#reach = reach
    this.#exit = exit
    this.#server = createServer({ requestTimeout: 0, keepAliveTimeout: 60_000 })
      .on('request', (request, response) => void this.#forward(request, response))
      .on('connect', (request, socket, head) => void this.#tunnel(request, socket, head))
      .on('clientError', (_, socket) => void socket.destroy())
      .on('connection', socket => this.#track(socket))
  }

  /**
   * Listens on a free port of loopback; calls `reach` at every connection.
   *
   * @param exitPort The port of the proxy of an exit, which looks names up itself and which everything outside goes
   *   through.
   */
  static async open(reach: () => Promise<NetworkReach>, exitPort?: number): Promise<Gate> {
    const gate = new Gate(reach, exitPort === undefined ? undefined : exitProxy(exitPort))
    await new Promise<void>((listening, failed) => {
      gate.#server.once('error', failed).listen(0, '127.0.0.1', listening)
    })
    gate.port = (gate.#server.address() as AddressInfo).port
    return gate
  }

  /** Why the last connection to a server failed, if it did. */
  failure(url: URL): GateFailure | undefined {
    return this.#failures.get(keyOf(url))
  }

  /** Why an address is forbidden, without connecting to it; undefined: it is allowed, or its name does not resolve. */
  async barred(url: URL): Promise<string | undefined> {
    try {
      await this.#checked(url, await this.#reach())
      return undefined
    } catch (error) {
      return error instanceof Refusal ? error.message : undefined
    }
  }

  /** Closes the gate and every connection through it. */
  async close(): Promise<void> {
    this.#closing.abort()
    for (const socket of this.#open) socket.destroy()
    await new Promise<void>(closed => this.#server.close(() => closed()))
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? '')
    // Only requests meant for a proxy name a whole URL.
    if (url?.protocol !== 'http:') return void request.socket.destroy()
    try {
      const { own, proxy, ...to } = await this.#way(url)
      const far = own ?? (proxy && (await connectUpstream(proxy, this.#closing.signal)))
      const asked = askServer({
        ...to,
        method: request.method,
        path: proxy ? `http://${url.host}${url.pathname}${url.search}` : url.pathname + url.search,
        headers: [
          ...endToEnd(request.rawHeaders),
          ...['connection', 'close'],
          ...(proxy ? Object.entries(upstreamHeaders(proxy)).flat() : []),
        ],
        setHost: false,
        // With an agent of any kind the connection of `createConnection` would not be used.
        ...(far ? { createConnection: () => far } : { agent: false }),
        signal: this.#closing.signal,
      })
      // It came paused, so that nothing of it is lost.
      asked.once('socket', () => far?.resume())
      response.once('close', () => asked.destroy())
      const answer = await new Promise<IncomingMessage>((answered, failed) => {
        asked
          .once('response', answered)
          .on('error', failed)
          .once('close', () => failed(new Error('it closed the connection without an answer')))
        pipeline(request, asked, () => {})
      })
      const refused = refusedByProxy(proxy, answer)
      if (refused) throw refused
      this.#failures.delete(keyOf(url))
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEnd(answer.rawHeaders))
      response.flushHeaders()
      pipeline(answer, response, () => {})
    } catch (error) {
      this.#failed(url, error)
      request.socket.destroy()
    }
  }

  async #tunnel(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const url = URL.parse(`https://${request.url ?? ''}`)
    if (!url || url.pathname !== '/' || url.search || url.username) return void socket.destroy()
    socket.on('error', ignored('its close follows'))
    try {
      const { own, proxy, ...to } = await this.#way(url)
      const ready = own ?? (proxy && (await tunnel(proxy, to, this.#closing.signal)))
      const far = ready ?? connect({ ...to, autoSelectFamily: true })
      this.#track(far)
      socket.once('close', () => far.destroy())
      if (!ready)
        await new Promise<void>((connected, failed) => {
          far
            .once('connect', connected)
            .once('error', failed)
            .once('close', () => failed(new Error('it closed the connection')))
        })
      this.#failures.delete(keyOf(url))
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      far.write(head)
      pipeline(socket, far, socket, () => {})
    } catch (error) {
      this.#failed(url, error)
      socket.destroy()
    }
  }

  /**
   * The way to a server: its checked addresses, because a second lookup might return others, or a connection to a port
   * of the conversation's own loopback.
   */
  async #way(url: URL): Promise<Way> {
    const reach = await this.#reach()
    const { addresses, proxy } = await this.#checked(url, reach)
    const [first] = addresses
    const own = first && isOwnLoopback(first.address, reach) ? await reach.own!.dial(portOf(url)) : undefined
    return {
      host: bare(url),
      port: portOf(url),
      lookup: lookupOf(addresses),
      ...(own && { own }),
      ...(proxy && { proxy }),
    }
  }

  async #checked(url: URL, reach: NetworkReach) {
    const isLocal = /(?:^|\.)localhost\.?$/i.test(url.hostname)
    if (this.#exit && !isLocal) return { addresses: [], proxy: outsideThrough(url, this.#exit, reach.own?.rules) }
    const local = isLocal ? new URL(`http://localhost:${portOf(url)}`) : url
    return wayTo(local, reach, this.#closing.signal)
  }

  #failed(url: URL, error: unknown): void {
    const { code, message } = error as NodeJS.ErrnoException
    const first = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException | undefined) : undefined
    const key = keyOf(url)
    this.#failures.delete(key)
    this.#failures.set(key, { barred: error instanceof Refusal, why: SENTENCES[code ?? first?.code ?? ''] ?? message })
    if (this.#failures.size > MOST_FAILURES) this.#failures.delete(this.#failures.keys().next().value!)
  }

  #track(socket: Socket): void {
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
    if (this.#closing.signal.aborted) socket.destroy()
  }
}

const exitProxy = (port: number): UpstreamProxy => ({
  ...{ host: '127.0.0.1', port, secure: false, address: `http://127.0.0.1:${port}`, variable: 'the exit' },
})

/**
 * The exit, for what is outside: a name of a private network is not looked up far away, nor near, and the rules of a
 * conversation hold for it too.
 */
const outsideThrough = (url: URL, exit: UpstreamProxy, rules: NetworkRules | undefined): UpstreamProxy => {
  const host = normalHost(url.hostname) ?? ''
  const plain = plainAddress(host)
  if (plain === undefined ? isNearName(host) || isMetadataName(host) : addressKind(plain) !== 'public')
    refuse('forbidden', `${url.hostname} is not reached through an exit: it is no public address`)
  const target = { host, port: portOf(url) }
  const barred = rules && (plain === undefined ? judgeName(target, rules) : judge(target, plain, rules))
  if (barred) refuse('forbidden', sentenceOf(target, barred))
  return exit
}

const portOf = (url: URL): number => Number(url.port || (url.protocol === 'https:' ? 443 : 80))

const bare = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

const keyOf = (url: URL): string => `${url.hostname}:${portOf(url)}`

/** Headers in their original order and case, without hop-by-hop headers. */
const endToEnd = (raw: readonly string[]): string[] => {
  const named = raw.flatMap((name, at) =>
    at % 2 === 0 && name.toLowerCase() === 'connection' ? raw[at + 1]!.toLowerCase().split(/\s*,\s*/) : [],
  )
  return raw.filter((_, at) => {
    const name = raw[at - (at % 2)]!.toLowerCase()
    return !HOP_BY_HOP.test(name) && !named.includes(name)
  })
}

/** Parses an address; refuses an invalid one. */
export const addressOf = (text: string): URL =>
  URL.parse(text)
  ?? refuse('invalid', `url: expected an http or https address, found ${JSON.stringify(text.slice(0, 200))}`)
