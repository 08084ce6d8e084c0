import { request, ServerResponse, STATUS_CODES, type IncomingMessage, type RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline, type Duplex, type Readable, type Transform } from 'node:stream'
import { Refusal } from '../../refusal.js'
import { codeOf } from '../files/paths.js'
import type { BoundTraffic } from './bound-traffic.js'
import { Masker } from '../access/masker.js'
import { filled, hidden, maskedBytes, pairs } from './filling.js'
import { CLOSED, SENTENCES } from './failure-words.js'
import { written, type Target } from './host-form.js'
import { splice } from './splice.js'
import { refusedByProxy, upstreamHeaders, type UpstreamProxy } from './upstream.js'

/**
 * Headers of one connection, not of the request (RFC 9110, section 7.6.1), and those that say where it begins, where
 * it ends and for whom it is: the daemon writes these from what its own parser found.
 */
const TRAVEL = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'http2-settings',
  'proxy-authorization',
  'proxy-authenticate',
  'expect',
  'host',
  'content-length',
  'transfer-encoding',
])

/** Why a request is not sent on. */
export interface Wrong {
  readonly status: number
  readonly text: string
}

/** Where a request is sent on to, and how. */
export interface Onward {
  readonly target: Target
  readonly secure: boolean
  readonly path: string
  /** How it is connected. */
  readonly connection: Pick<RequestOptions, 'agent' | 'createConnection'>
  /** The proxy of the deployment that the connection leads to; left out: it leads to the target itself. */
  readonly proxy?: UpstreamProxy
  /** What is put in on the way; left out: nothing. */
  readonly bound?: BoundTraffic
}

/** The error as the program gets it. */
export const wrongOf = (error: unknown, target: Target): Wrong => {
  if (error instanceof Refusal) return { status: error.reason === 'dependency' ? 502 : 403, text: error.message }
  const code = codeOf(error) ?? ''
  const status = code === 'ETIMEDOUT' ? 504 : 502
  return { status, text: `${written(target)} could not be asked: ${SENTENCES[code] ?? (code || String(error))}` }
}

/** The header `Host` of a target. */
export const hostHeader = ({ host, port }: Target, secure: boolean): string => {
  const name = host.includes(':') ? `[${host}]` : host
  return port === (secure ? 443 : 80) ? name : `${name}:${port}`
}

/** The headers of a message that go on with it. */
const travelling = ({ rawHeaders, headers }: IncomingMessage): string[] => {
  const named = new Set((headers.connection ?? '').split(',').map(name => name.trim().toLowerCase()))
  return rawHeaders.flatMap((name, at) => {
    const key = name.toLowerCase()
    return at % 2 || TRAVEL.has(key) || named.has(key) ? [] : [name, rawHeaders[at + 1] ?? '']
  })
}

/** Headers by which a program would choose how a host encodes or cuts an answer; cut values are not found in it. */
const CHOOSING = new Set(['accept-encoding', 'accept-charset', 'range', 'if-range', 'a-im'])

const whole = (headers: readonly string[]): string[] => [
  ...headers.filter((_, at) => !CHOOSING.has(headers[at - (at % 2)]!.toLowerCase())),
  'accept-encoding',
  'identity',
]

/** Where a message ends, as the parser found it; undefined: its body is coded in a way that is not sent on. */
const framing = ({ headers }: IncomingMessage, body?: Buffer): string[] | undefined => {
  const { 'transfer-encoding': coding, 'content-length': length } = headers
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return undefined
  if (body && (coding !== undefined || length !== undefined)) return ['content-length', String(body.length)]
  if (coding !== undefined) return ['transfer-encoding', 'chunked']
  return length === undefined ? [] : ['content-length', length]
}

/** Sends a request on and gives its answer back. */
export const forward = async (asked: IncomingMessage, answer: ServerResponse, onward: Onward): Promise<void> => {
  const { target, secure, bound, path, connection, proxy } = onward
  const method = asked.method ?? 'GET'
  const masker = bound?.opens(target.host) ? await bound.masker(target.host) : undefined
  const all = masker ? whole(travelling(asked)) : travelling(asked)
  const { headers, body } = bound
    ? await filled(asked, all, { ...target, method, secure }, bound)
    : { headers: all, body: asked }
  const frame = framing(asked, Buffer.isBuffer(body) ? body : undefined)
  if (!frame) return answerWrong(answer, { status: 501, text: 'expected a body that is chunked or has a length' })
  const close = connection.agent ? [] : ['connection', 'close']
  const sent = request({
    ...connection,
    method,
    path: proxy ? `http://${hostHeader(target, secure)}${path}` : path,
    setHost: false,
    headers: [
      'host',
      hostHeader(target, secure),
      ...headers,
      ...frame,
      ...close,
      ...(proxy ? Object.entries(upstreamHeaders(proxy)).flat() : []),
    ],
  })
  sent.once('response', came => {
    const refused = refusedByProxy(proxy, came)
    if (refused) return answerWrong(answer, wrongOf(refused, target))
    return give(came, answer, target, masker, () => void (connection.agent ? undefined : sent.destroy()))
  })
  // It came paused, so that nothing of it is lost.
  sent.once('socket', socket => socket.resume())
  sent.on('error', error => (answer.headersSent ? void answer.destroy() : answerWrong(answer, wrongOf(error, target))))
  // A host that switches the protocol makes no other event.
  sent.once('close', () => answer.headersSent || answerWrong(answer, wrongOf(new Error(CLOSED), target)))
  answer.once('close', () => answer.writableFinished || sent.destroy())
  if (Buffer.isBuffer(body)) sent.end(body)
  else if (frame.length > 0) pipeline(body, sent, () => {})
  else sent.end()
}

/** Gives a program the answer of a host; without the values that the masker finds in it. */
const give = (
  came: IncomingMessage,
  answer: ServerResponse,
  target: Target,
  masker: Masker | undefined,
  given: () => void,
): void => {
  const shown = masker && hidden(came, travelling(came), masker)
  const length = framing(came)
  if ((masker && !shown) || !length) {
    came.destroy()
    return answerWrong(answer, { status: 502, text: `${written(target)} answers packed in a way that cannot be read` })
  }
  const status = came.statusCode ?? 502
  // A reason is free text, in which a host could say anything.
  if (shown) answer.writeHead(status, STATUS_CODES[status] ?? '', shown.headers)
  else
    answer.writeHead(status, came.statusMessage, [
      ...travelling(came),
      ...(length[0] === 'content-length' ? length : []),
    ])
  // The types of `pipeline` know no list whose first is read and whose last is written.
  const ways: readonly [Readable, ...Transform[]] = shown?.body ?? [came]
  pipeline([...ways, answer], given)
}

/**
 * Sends a request on that asks for another protocol; once the host agrees, what a program says goes on as it is, with
 * its placeholders, and what the host says without the values.
 */
export const switchProtocol = async (
  asked: IncomingMessage,
  socket: Socket,
  head: Buffer,
  { target, secure, bound, path, connection }: Onward,
): Promise<void> => {
  const masker = (await bound?.masker(target.host)) ?? new Masker([])
  const plain = travelling(asked)
  const sent = request({
    ...connection,
    method: asked.method ?? 'GET',
    path,
    setHost: false,
    headers: [
      'host',
      hostHeader(target, secure),
      // Packed messages show no value.
      ...pairs(whole(plain)).flatMap(([name, value]) =>
        /^sec-websocket-extensions$/i.test(name) ? [] : [name, value],
      ),
      'connection',
      'upgrade',
      'upgrade',
      asked.headers.upgrade ?? '',
    ],
  })
  sent.once('socket', far => far.resume())
  sent.once('response', came => {
    const answer = new ServerResponse(asked)
    answer.shouldKeepAlive = false
    answer.assignSocket(socket)
    answer.once('finish', () => socket.end())
    give(came, answer, target, masker, () => {})
  })
  sent.once('upgrade', (came, far, first) => {
    const lines = pairs(hidden(came, travelling(came), masker)?.headers ?? [])
      .concat([
        ['connection', 'upgrade'],
        ['upgrade', masker.mask(came.headers.upgrade ?? '')],
      ])
      .map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`, 'latin1')
    if (first.length) far.unshift(first)
    if (head.length) socket.unshift(head)
    splice(socket, far, { through: maskedBytes(masker) })
  })
  sent.on('error', error => endWrong(socket, wrongOf(error, target)))
  socket.once('close', () => sent.destroy())
  sent.end()
}

/** Ends a connection with why. */
export const endWrong = (socket: Duplex, { status, text }: Wrong): void => {
  const body = `${text}\n`
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: text/plain; charset=utf-8\r\n`
      + `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

/** Answers a request with why it was not sent on. */
export const answerWrong = (answer: ServerResponse, { status, text }: Wrong): void => {
  if (answer.destroyed || answer.headersSent) return void answer.destroy()
  answer.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' }).end(`${text}\n`)
}
