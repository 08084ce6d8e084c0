import { lookup as resolve, type LookupAddress } from 'node:dns'
import { request as plainRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as secureRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { Refusal, refuse } from '../refusal.js'
import { barred, type Reach } from './addresses.js'

/** A request to a server outside, made for somebody else. */
export interface OutboundRequest {
  readonly url: string
  readonly method?: string
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string
  readonly reach: Reach
  readonly signal?: AbortSignal
  /** For everything together: names, redirects, the whole answer. */
  readonly timeoutMs: number
  /** How many redirects are followed; left out: 10. */
  readonly redirects?: number
  /** The most bytes of the answer's body that are read. */
  readonly maxBytes: number
}

export interface OutboundReply {
  /** Where the answer came from, after redirects. */
  readonly url: string
  readonly status: number
  readonly statusText: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The body went on. */
  readonly truncated: boolean
}

const MOST_REDIRECTS = 10
const MOST_HEADERS = 64 * 1024
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** Headers that are for the server they were meant for, and for no other. */
const PRIVATE = /^(?:authorization|cookie|proxy-authorization|x-.*(?:key|token|secret).*)$/i

interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: string
}

/** The address as it is asked; refused when it is none of the web. */
export const webAddress = (text: string, base?: URL): URL => {
  const shown = JSON.stringify(text.slice(0, 200))
  const url = URL.parse(text, base?.href) ?? refuse('invalid', `url: expected an http or https address, found ${shown}`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    refuse('invalid', `url: expected an http or https address, found one of ${url.protocol.slice(0, 40)}`)
  }
  if (url.username || url.password) refuse('invalid', 'url: expected an address without a name and password in it; send them as a header')
  return url
}

/**
 * Asks a server, following its redirects; a status of 400 and more is an answer too.
 *
 * Every address a name stands for is checked, at every redirect again, and the connection goes to one that was.
 */
export const askOutside = async (asked: OutboundRequest): Promise<OutboundReply> => {
  const { signal, timeoutMs, redirects: most = MOST_REDIRECTS } = asked
  const late = AbortSignal.timeout(timeoutMs)
  const over = signal ? AbortSignal.any([signal, late]) : late
  let hop: Hop = {
    url: webAddress(asked.url), method: asked.method ?? 'GET', headers: asked.headers ?? {},
    ...(asked.body !== undefined && { body: asked.body }),
  }
  try {
    for (let redirects = 0; ; redirects++) {
      const answer = await send(hop, await addressesOf(hop.url, asked.reach, over), over)
      const { location } = answer.headers
      if (!REDIRECTS.has(answer.statusCode ?? 0) || location === undefined) return await read(answer, hop.url, asked.maxBytes)
      answer.destroy()
      if (redirects === most) refuse('dependency', `${asked.url.slice(0, 200)} redirects more than ${most} times`)
      hop = redirected(hop, answer.statusCode!, webAddress(location, hop.url))
    }
  } catch (error) {
    signal?.throwIfAborted()
    if (late.aborted) return refuse('dependency', `${hop.url.host} did not answer within ${timeoutMs} ms`)
    if (error instanceof Refusal) throw error
    const { code, message } = error as NodeJS.ErrnoException
    return refuse('dependency', `${hop.url.host} could not be asked: ${SENTENCES[code ?? ''] ?? code ?? message}`, { cause: error })
  }
}

/** What codes of failed connections mean, in words. */
export const SENTENCES: { readonly [code: string]: string } = {
  ENOTFOUND: 'no such name', EAI_AGAIN: 'names cannot be looked up now', ECONNREFUSED: 'nothing is listening there',
  ECONNRESET: 'it closed the connection', ETIMEDOUT: 'it does not answer', EHOSTUNREACH: 'there is no way to it',
  ENETUNREACH: 'there is no way to it', HPE_HEADER_OVERFLOW: `its headers are over ${MOST_HEADERS} bytes`,
}

/** The addresses a host stands for, only those that may be asked. */
export const addressesOf = async (url: URL, reach: Reach, signal: AbortSignal): Promise<LookupAddress[]> => {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const family = isIP(host)
  const all = family ? [{ address: host, family }] : await named(host, signal)
  const open = all.filter(({ address }) => barred(address, port, reach) === undefined)
  if (open.length > 0) return open
  const why = all[0] === undefined ? 'it stands for no address' : barred(all[0].address, port, reach)
  return refuse('forbidden', `${url.host} is not asked: ${why}`)
}

const named = (host: string, signal: AbortSignal): Promise<LookupAddress[]> =>
  new Promise((found, failed) => {
    signal.throwIfAborted()
    const stop = () => failed(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    resolve(host, { all: true }, (error, addresses) => {
      signal.removeEventListener('abort', stop)
      if (error) failed(error)
      else found(addresses)
    })
  })

const send = ({ url, method, headers, body }: Hop, addresses: readonly LookupAddress[], signal: AbortSignal): Promise<IncomingMessage> =>
  new Promise((answered, failed) => {
    // The name was looked up and checked: looked up again it might stand for something else.
    const lookup: LookupFunction = (_, { all }, found) =>
      all ? found(null, [...addresses]) : found(null, addresses[0]!.address, addresses[0]!.family)
    const request = (url.protocol === 'https:' ? secureRequest : plainRequest)(url, {
      method, lookup, signal, agent: false, maxHeaderSize: MOST_HEADERS,
      headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'sandbox', ...headers },
    })
    request.once('response', answered)
    request.on('error', failed)
    request.once('close', () => failed(new Error('it closed the connection without an answer')))
    request.end(body)
  })

const read = async (answer: IncomingMessage, url: URL, maxBytes: number): Promise<OutboundReply> => {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of answer as AsyncIterable<Buffer>) {
    pieces.push(piece.subarray(0, maxBytes - bytes))
    bytes += piece.length
    if (bytes > maxBytes) break
  }
  answer.destroy()
  const { statusCode = 0, statusMessage = '', headers } = answer
  return { url: url.href, status: statusCode, statusText: statusMessage, headers, body: Buffer.concat(pieces), truncated: bytes > maxBytes }
}

/** What a redirect asks for; what was private to the one server does not go to another. */
const redirected = (hop: Hop, status: number, url: URL): Hop => {
  const again = status === 307 || status === 308
  const method = again || hop.method === 'GET' || hop.method === 'HEAD' ? hop.method : 'GET'
  const keeps = (name: string) => (url.origin === hop.url.origin || !PRIVATE.test(name)) && (again || !/^content-/i.test(name))
  const headers = Object.fromEntries(Object.entries(hop.headers).filter(([name]) => keeps(name)))
  return { url, method, headers, ...(again && hop.body !== undefined && { body: hop.body }) }
}
