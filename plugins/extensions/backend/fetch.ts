import { request as plainRequest, type IncomingMessage } from 'node:http'
import { request as secureRequest } from 'node:https'
import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { connect as secured } from 'node:tls'
import { refuse } from '../../../sdk/index.js'
import type { HostFetchInput, TextFields } from '../../../sdk/node/extension/protocol.js'
import { LINK_PIECE } from '../../../sdk/node/extension/protocol.js'
import { Masker } from '../../../sdk/node/access/masker.js'
import { SENTENCES } from '../../../sdk/node/network/failure-words.js'
import { webAddress } from '../../../sdk/node/network/outbound.js'
import { proxyBehind, refusedByProxy, upstreamHeaders } from '../../../sdk/node/network/upstream.js'
import { bytesGiven } from '../../../sdk/node/extension/bytes.js'
import type { HostHandlers } from './operations.js'
import type { BackendProcess } from './process.js'
import { reachTarget, type ReachDeps } from './reach.js'
import { filledTexts, type SecretDeps } from './secrets.js'

/** The dependencies of sending requests of a backend. */
export interface FetchDeps {
  readonly reach: ReachDeps
  readonly secrets: SecretDeps
  readonly link: () => BackendProcess['link']
}

const MOST_BODY = 100 * 1024 * 1024
const MOST_REDIRECTS = 10
const MOST_HEADERS = 64 * 1024
const DEFAULT_MS = 60_000
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/**
 * Headers that the connection decides. A value is found only in an answer that is whole and not encoded, so the
 * extension asks for neither.
 */
const CONNECTION =
  /^(?:host|(?:accept|transfer)-encoding|connection|content-length|expect|upgrade|te|trailer|keep-alive|proxy-.*)$/i
/** Headers for the server that they were meant for, and for no other. */
const PRIVATE = /^(?:authorization|cookie|proxy-authorization|x-.*(?:key|token|secret).*)$/i

interface Sent {
  readonly url: URL
  readonly method: string
  readonly headers: { [name: string]: string }
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array> | undefined
}

/** The operation that sends requests to outside servers. */
export const fetchOperations = (deps: FetchDeps): Pick<HostHandlers, 'fetch'> => {
  /** The values that it sent until now: a server may answer with one later. */
  const used = new Map<string, string>()
  return {
    fetch: (input, signal) => fetched(deps, used, input, signal),
  }
}

const fetched = async (
  deps: FetchDeps,
  used: Map<string, string>,
  input: HostFetchInput,
  signal: AbortSignal,
): Promise<Awaited<ReturnType<HostHandlers['fetch']>>> => {
  const ended = new AbortController()
  const late = AbortSignal.timeout(input.timeoutMs ?? DEFAULT_MS)
  const all = AbortSignal.any([signal, late, ended.signal])
  const link = deps.link()
  try {
    const { sent, values } = await filledRequest(deps, input)
    const secret = values.length > 0
    for (const { name, value } of values) used.set(value, name)
    const masker = used.size > 0 ? maskerOf(used) : undefined
    if (masker) for (const name of PIECES) delete sent.headers[name]
    const { answer, url } = await followed(deps.reach, sent, input.redirect ?? 'follow', secret, all)
    const encoded = (answer.headers['content-encoding'] ?? 'identity').trim().toLowerCase()
    if (masker && encoded !== 'identity' && encoded !== '') {
      answer.destroy()
      refuse(
        'dependency',
        `${hostOf(input.url)} answered encoded (${encoded.slice(0, 40)}), in which no value is found`,
      )
    }
    const headers = headersOf(answer, masker)
    return {
      status: answer.statusCode ?? 502,
      headers,
      url: masker ? masker.mask(url.href) : url.href,
      body: link.offer(bodyOf(answer, masker, ended)),
    }
  } catch (error) {
    ended.abort()
    signal.throwIfAborted()
    if (late.aborted) return refuse('dependency', `${hostOf(input.url)} did not answer in time`)
    const { code, syscall } = error as NodeJS.ErrnoException
    if (code !== undefined && (syscall !== undefined || code in SENTENCES || /^(?:HPE_|ERR_|E)/.test(code)))
      return refuse('dependency', `${hostOf(input.url)} could not be asked: ${SENTENCES[code] ?? code}`)
    throw error
  }
}

/** Headers with which a server answers with parts of a value. */
const PIECES = ['range', 'if-range'] as const

/** Finds values in bytes that are read one by one, however the server encodes its text. */
const maskerOf = (used: ReadonlyMap<string, string>): Masker =>
  new Masker(
    [...used].flatMap(([value, name]) => {
      const wide = Buffer.from(value, 'utf16le')
      const bytes = [Buffer.from(value), wide, Buffer.from(wide).swap16()]
      return [...new Set([value, ...bytes.map(each => each.toString('latin1'))])].map(form => ({ name, value: form }))
    }),
  )

const hostOf = (url: string): string => URL.parse(url)?.host ?? 'the server'

/** The request with the values of the secrets that it refers to. */
const filledRequest = async (
  { secrets, link }: FetchDeps,
  { url: text, method = 'GET', headers = {}, query = {}, body, pieces }: HostFetchInput,
): Promise<{ sent: Sent; values: { name: string; value: string }[] }> => {
  const names = Object.keys(headers)
  const queryNames = Object.keys(query)
  const isText = typeof body === 'string'
  // Filled apart from the address, so that a value cannot add a part to it.
  const { texts, values } = await filledTexts(secrets, [
    ...names.map(name => headers[name]!),
    ...queryNames.map(name => query[name]!),
    ...(isText ? [body] : []),
  ])
  const url = webAddress(text)
  for (const [at, name] of queryNames.entries()) url.searchParams.append(name, texts[names.length + at]!)
  const kept = names.flatMap((name, at): [string, string][] =>
    CONNECTION.test(name) ? [] : [[name.toLowerCase(), texts[at]!]],
  )
  return {
    values,
    sent: {
      url,
      method: method.toUpperCase(),
      headers: Object.fromEntries(kept),
      body: isText
        ? texts.at(-1)!
        : pieces
          ? piecesWithin(link().read(pieces))
          : body === undefined
            ? undefined
            : bytesGiven('body', body),
    },
  }
}

async function* piecesWithin(pieces: AsyncIterable<unknown>): AsyncGenerator<Uint8Array, void> {
  let size = 0
  for await (const piece of pieces) {
    if (!(piece instanceof Uint8Array)) return refuse('invalid', 'body: expected bytes, found another value')
    size += piece.length
    if (size > MOST_BODY) refuse('too-large', `body: expected at most ${MOST_BODY} bytes`)
    yield piece
  }
}

/** Sends a request and follows its redirects; each address is checked like the first. */
const followed = async (
  reach: ReachDeps,
  first: Sent,
  redirect: 'follow' | 'manual',
  secret: boolean,
  signal: AbortSignal,
): Promise<{ answer: IncomingMessage; url: URL }> => {
  let sent = first
  for (let redirects = 0; ; redirects++) {
    const answer = await send(reach, sent, signal)
    const { location } = answer.headers
    if (redirect === 'manual' || !REDIRECTS.has(answer.statusCode ?? 0) || location === undefined)
      return { answer, url: sent.url }
    answer.destroy()
    if (redirects === MOST_REDIRECTS) refuse('dependency', `${first.url.host} redirects more than ${redirects} times`)
    sent = redirected(sent, answer.statusCode!, webAddress(location, sent.url), secret)
  }
}

const redirected = ({ method, headers, body, url: from }: Sent, status: number, url: URL, secret: boolean): Sent => {
  const again = status === 307 || status === 308
  const same = from.origin === url.origin
  if (again && body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array))
    refuse('dependency', `${from.host} redirects a request whose body can be sent only once`)
  if (again && !same && secret && body !== undefined)
    refuse('dependency', `${from.host} redirects a request with a secret in it to ${url.host}`)
  const kept = Object.entries(headers).filter(
    ([name]) => (same || (!secret && !PRIVATE.test(name))) && (again || !name.startsWith('content-')),
  )
  return {
    url,
    method: again || method === 'GET' || method === 'HEAD' ? method : 'GET',
    headers: Object.fromEntries(kept),
    body: again ? body : undefined,
  }
}

const send = async (
  reach: ReachDeps,
  { url, method, headers, body }: Sent,
  signal: AbortSignal,
): Promise<IncomingMessage> => {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const secure = url.protocol === 'https:'
  const target = { host, port: Number(url.port || (secure ? 443 : 80)) }
  const socket = await reachTarget(reach, target, signal, secure ? 'whatever' : 'plain')
  const proxy = proxyBehind(socket)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const request = (secure ? secureRequest : plainRequest)(url, {
    method,
    signal,
    maxHeaderSize: MOST_HEADERS,
    createConnection: () => (secure ? secured({ socket, servername: isIP(host) ? '' : host }) : socket),
    ...(proxy && { path: `http://${url.host}${url.pathname}${url.search}` }),
    headers: {
      ...{ accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'sandbox' },
      ...headers,
      ...(proxy && upstreamHeaders(proxy)),
    },
  })
  // It arrives paused, so that no data is lost.
  request.once('socket', () => socket.resume())
  request.once('response', answer => {
    const refused = refusedByProxy(proxy, answer)
    if (refused) reject(refused)
    else resolve(answer)
  })
  request.once('error', reject)
  request.once('close', () => reject(Object.assign(new Error('it closed the connection'), { code: 'ECONNRESET' })))
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) request.end(body)
  else pipeline(Readable.from(body), request).catch(reject)
  return promise
}

const headersOf = ({ headers }: IncomingMessage, masker: Masker | undefined): TextFields =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]): [string, string][] => {
      if (value === undefined) return []
      const text = Array.isArray(value) ? value.join(', ') : value
      return [[name, masker ? masker.mask(text) : text]]
    }),
  )

/** The body in pieces, at most 100 MiB, without the values that were put into the request. */
async function* bodyOf(
  answer: IncomingMessage,
  masker: Masker | undefined,
  ended: AbortController,
): AsyncGenerator<Uint8Array, void> {
  const masked = masker?.stream()
  let size = 0
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      size += piece.length
      if (size > MOST_BODY) refuse('too-large', `the answer is larger than ${MOST_BODY} bytes`)
      const shown = masked ? Buffer.from(masked.push(piece.toString('latin1')), 'latin1') : piece
      for (let at = 0; at < shown.length; at += LINK_PIECE) yield shown.subarray(at, at + LINK_PIECE)
    }
    if (masked) yield Buffer.from(masked.end(), 'latin1')
  } finally {
    answer.destroy()
    ended.abort()
  }
}
