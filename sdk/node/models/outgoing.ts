import { request as plainRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as secureRequest } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { Refusal } from '../../refusal.js'
import { askableWay, type AskableWay } from '../network/askable.js'
import { CLOSED } from '../network/failure-words.js'
import { GrowingBytes } from '../growing-bytes.js'
import { refusedByProxy } from '../network/upstream.js'

/** A request to a server outside the daemon. */
export interface OutgoingRequest {
  readonly url: string
  readonly method?: 'GET' | 'POST' | 'HEAD'
  readonly headers?: { readonly [name: string]: string }
  /** A JSON value. */
  readonly body?: unknown
  readonly signal: AbortSignal
  /** How long the headers of the answer may take, in ms; default: 10 s. */
  readonly within?: number
  /** Which redirects are followed; default: `same-origin`. */
  readonly redirects?: 'same-origin' | 'secure'
}

/** An answer with its headers; the body is streamed. */
export interface OutgoingAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The address that answered, after redirects. */
  readonly url: string
  readonly body: IncomingMessage
}

/** Why a server gave no answer. */
export type UnansweredKind = 'timeout' | 'unknown-host' | 'unreachable' | 'certificate' | 'redirect' | 'cut'

/** A server gave no answer; the message names it and says what to do. */
export class Unanswered extends Error {
  readonly kind: UnansweredKind

  constructor(kind: UnansweredKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'Unanswered'
    this.kind = kind
  }
}

const MOST_REDIRECTS = 5
const WITHIN = 10_000
const UNKNOWN = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA', 'EAI_NONAME'])

/** Whether the host of a URL is a loopback name or address. */
export const isLoopbackHostname = (hostname: string): boolean =>
  /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/i.test(hostname)

/** Whether what goes to an address is not readable on the way: https, or http on this machine. */
export const isPrivateAddress = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopbackHostname(hostname))

/** Sends a request and waits for the headers of the answer; follows redirects. */
export const outgoing = async (asked: OutgoingRequest): Promise<OutgoingAnswer> => {
  const { within = WITHIN } = asked
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), within)
  const signal = AbortSignal.any([asked.signal, late.signal])
  let url = new URL(asked.url)
  let reach: AskableWay['redirects'] | undefined
  try {
    for (let redirects = 0; ; redirects++) {
      const way = await wayOf(url, signal, reach)
      reach = way.redirects
      const answer = await send(way, url, asked, signal, asked.signal)
      const { location } = answer.headers
      const status = answer.statusCode ?? 0
      if (![301, 302, 303, 307, 308].includes(status) || location === undefined)
        return { status, headers: answer.headers, url: url.href, body: answer }
      answer.destroy()
      url = redirected(url, location, asked, redirects)
    }
  } catch (error) {
    if (late.signal.aborted && !asked.signal.aborted) {
      throw new Unanswered(
        'timeout',
        `${url.origin} did not answer within ${Math.round(within / 1000)} s: check that the server runs and can be `
          + 'reached from here',
        error,
      )
    }
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** The target of a redirect; throws `Unanswered` if it is not followed. */
const redirected = (from: URL, location: string, { method, redirects }: OutgoingRequest, times: number): URL => {
  const to = URL.parse(location, from.href)
  const named = to ? to.origin : 'no address'
  if (times >= MOST_REDIRECTS) throw new Unanswered('redirect', `${from.origin} redirects more than 5 times`)
  const follows =
    redirects === 'secure'
      ? to !== null && (to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:'))
      : to?.origin === from.origin && (method ?? 'GET') !== 'POST'
  if (!follows || !to) {
    throw new Unanswered(
      'redirect',
      `${from.origin} redirects to ${named}${to?.origin === from.origin ? to.pathname : ''}, which is not followed: `
        + 'give that address itself if it is the right one',
    )
  }
  return to
}

const wayOf = (url: URL, signal: AbortSignal, reach?: AskableWay['redirects']): Promise<AskableWay> =>
  askableWay(url, false, signal, reach).catch((error: unknown) => {
    throw signal.aborted ? error : failureOfConnection(url, error as NodeJS.ErrnoException)
  })

const send = (
  { options: through, proxy }: AskableWay,
  url: URL,
  asked: OutgoingRequest,
  signal: AbortSignal,
  forBody: AbortSignal,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const text = asked.body === undefined ? undefined : JSON.stringify(asked.body)
    const near = isLoopbackHostname(url.hostname)
    const options = {
      ...through,
      method: asked.method ?? 'GET',
      headers: {
        accept: '*/*',
        'user-agent': 'sandbox',
        ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        ...asked.headers,
        ...through.headers,
      },
      rejectUnauthorized: !near,
    }
    const request = url.protocol === 'https:' ? secureRequest(url, options) : plainRequest(url, options)
    const abort = () => request.destroy(new Error('aborted'))
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    request.on('socket', socket => socket.once('secureConnect', () => refuseForged(socket as TLSSocket)))
    request.on('error', error => {
      signal.removeEventListener('abort', abort)
      reject(signal.aborted ? error : failureOfConnection(url, error))
    })
    // A server that switches the protocol makes no other event.
    request.once('close', () => {
      signal.removeEventListener('abort', abort)
      reject(failureOfConnection(url, new Error(CLOSED)))
    })
    request.on('response', answer => {
      signal.removeEventListener('abort', abort)
      const end = () => answer.destroy(new Error('aborted'))
      forBody.addEventListener('abort', end, { once: true })
      answer.once('close', () => forBody.removeEventListener('abort', end))
      const refused = url.protocol === 'http:' ? refusedByProxy(proxy, answer) : undefined
      if (refused) reject(failureOfConnection(url, refused))
      else resolve(answer)
    })
    request.end(text)
  })

/** Accepts a self-signed certificate of a loopback server; any other certificate error ends the connection. */
const refuseForged = (socket: TLSSocket): void => {
  const error = socket.authorizationError as unknown
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : error
  if (code && code !== 'DEPTH_ZERO_SELF_SIGNED_CERT')
    socket.destroy(Object.assign(new Error(String(code)), { code: String(code) }))
}

const failureOfConnection = (url: URL, error: NodeJS.ErrnoException): Unanswered => {
  const code = error.code ?? ''
  if (error instanceof Refusal) return new Unanswered('unreachable', error.message, error)
  if (UNKNOWN.has(code))
    return new Unanswered('unknown-host', `no address is known for ${url.hostname}: check its spelling`, error)
  if (/CERT|SIGNED|UNABLE_TO|ALTNAME|ERR_SSL|EPROTO/.test(code)) {
    return new Unanswered(
      'certificate',
      `the certificate of ${url.origin} cannot be verified (${code}): use one that this machine trusts, or http`,
      error,
    )
  }
  if (code === 'ECONNREFUSED')
    return new Unanswered('unreachable', `nothing listens at ${url.origin}: start the server, or correct it`, error)
  return new Unanswered('unreachable', `${url.origin} cannot be reached (${code || error.message})`, error)
}

/** Reads an answer up to a limit; `cut`: there was more. */
export const bytesOf = async (
  { body, url }: OutgoingAnswer,
  most: number,
  within = WITHIN,
): Promise<{ bytes: Buffer; cut: boolean }> => {
  const read = new GrowingBytes()
  let late = false
  const timer = setTimeout(() => {
    late = true
    body.destroy(new Error('late'))
  }, within)
  try {
    for await (const piece of body as AsyncIterable<Buffer>) {
      read.add(piece)
      if (read.size <= most) continue
      body.destroy()
      return { bytes: read.bytes.subarray(0, most), cut: true }
    }
  } catch (error) {
    const { origin } = new URL(url)
    throw late
      ? new Unanswered('timeout', `${origin} did not end its answer within ${Math.round(within / 1000)} s`, error)
      : new Unanswered('cut', `${origin} broke its answer off: ask again`, error)
  } finally {
    clearTimeout(timer)
  }
  return { bytes: read.bytes, cut: false }
}
