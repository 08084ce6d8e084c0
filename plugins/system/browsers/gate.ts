import { createServer, request as askServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type LookupFunction, type Socket } from 'node:net'
import { pipeline, type Duplex } from 'node:stream'
import { Refusal, refuse } from '../../../sdk/index.js'
import type { NetworkReach } from '../../../sdk/node/network/addresses.js'
import { addressesOf, SENTENCES } from '../../../sdk/node/network/outbound.js'

/** Why a server was not reached: it may not be, or it did not answer. */
export interface GateFailure {
  readonly barred: boolean
  readonly why: string
}

const MOST_FAILURES = 200
/** What is between a browser and its proxy, or between this proxy and a server, and is for neither far end. */
const OF_THE_HOP = /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i

/**
 * The one way out of a browser: a proxy that looks names up itself, checks every address, and connects to one it
 * checked.
 *
 * What is refused, and a server that does not answer, is a connection closed without a byte: pages see a failure of the
 * network and nothing they could read.
 */
export class Gate {
  /** The port it listens on. */
  port = 0
  readonly #server: Server
  readonly #reach: () => Promise<NetworkReach>
  readonly #failures = new Map<string, GateFailure>()
  readonly #open = new Set<Duplex>()
  readonly #closing = new AbortController()

  private constructor(reach: () => Promise<NetworkReach>) {
    this.#reach = reach
    this.#server = createServer({ requestTimeout: 0, keepAliveTimeout: 60_000 })
      .on('request', (request, response) => void this.#forward(request, response))
      .on('connect', (request, socket, head) => void this.#tunnel(request, socket, head))
      .on('clientError', (_, socket) => void socket.destroy())
      .on('connection', socket => this.#track(socket))
  }

  /** Opens a gate on a free port of loopback; `reach` is asked at every connection. */
  static async open(reach: () => Promise<NetworkReach>): Promise<Gate> {
    const gate = new Gate(reach)
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

  /** Why an address may not be asked, without asking it; undefined: it may, or its name stands for nothing. */
  async barred(url: URL): Promise<string | undefined> {
    try {
      await this.#addresses(url)
      return undefined
    } catch (error) {
      return error instanceof Refusal ? error.message : undefined
    }
  }

  /** Closes it, with every connection that goes through it. */
  async close(): Promise<void> {
    this.#closing.abort()
    for (const socket of this.#open) socket.destroy()
    await new Promise<void>(closed => this.#server.close(() => closed()))
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? '')
    // Only what was sent through a proxy on purpose names a whole address.
    if (url?.protocol !== 'http:') return void request.socket.destroy()
    try {
      const lookup = await this.#lookup(url)
      const asked = askServer({
        host: bare(url),
        port: portOf(url),
        lookup,
        method: request.method,
        path: url.pathname + url.search,
        headers: [...ofBothEnds(request.rawHeaders), 'connection', 'close'],
        setHost: false,
        agent: false,
        signal: this.#closing.signal,
      })
      response.once('close', () => asked.destroy())
      const answer = await new Promise<IncomingMessage>((answered, failed) => {
        asked
          .once('response', answered)
          .on('error', failed)
          .once('close', () => failed(new Error('it closed the connection without an answer')))
        pipeline(request, asked, () => {})
      })
      this.#failures.delete(keyOf(url))
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, ofBothEnds(answer.rawHeaders))
      response.flushHeaders()
      pipeline(answer, response, () => {})
    } catch (error) {
      this.#failed(url, error)
      request.socket.destroy()
    }
  }

  async #tunnel(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const url = URL.parse(`http://${request.url ?? ''}`)
    if (!url || url.pathname !== '/' || url.search || url.username) return void socket.destroy()
    socket.on('error', () => {})
    try {
      const lookup = await this.#lookup(url)
      const far = connect({ host: bare(url), port: portOf(url), lookup, autoSelectFamily: true })
      this.#track(far)
      socket.once('close', () => far.destroy())
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

  /** Answers with the addresses that were checked: looked up again the name might stand for others. */
  async #lookup(url: URL): Promise<LookupFunction> {
    const addresses = await this.#addresses(url)
    return (_, { all }, found) =>
      all ? found(null, addresses) : found(null, addresses[0]!.address, addresses[0]!.family)
  }

  async #addresses(url: URL) {
    const local = /(?:^|\.)localhost\.?$/i.test(url.hostname) ? new URL(`http://localhost:${portOf(url)}`) : url
    return addressesOf(local, await this.#reach(), this.#closing.signal)
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

const portOf = (url: URL): number => Number(url.port || (url.protocol === 'https:' ? 443 : 80))

const bare = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

const keyOf = (url: URL): string => `${url.hostname}:${portOf(url)}`

/** Headers in the order and writing they came, without those of the connection. */
const ofBothEnds = (raw: readonly string[]): string[] => {
  const named = raw.flatMap((name, at) =>
    at % 2 === 0 && name.toLowerCase() === 'connection' ? raw[at + 1]!.toLowerCase().split(/\s*,\s*/) : [],
  )
  return raw.filter((_, at) => {
    const name = raw[at - (at % 2)]!.toLowerCase()
    return !OF_THE_HOP.test(name) && !named.includes(name)
  })
}

/** The address as it is asked; refused when it is none. */
export const addressOf = (text: string): URL =>
  URL.parse(text)
  ?? refuse('invalid', `url: expected an http or https address, found ${JSON.stringify(text.slice(0, 200))}`)
