import { request, STATUS_CODES, type IncomingMessage, type RequestOptions, type ServerResponse } from 'node:http'
import { pipeline, type Duplex, type Readable, type Transform } from 'node:stream'
import { Refusal } from '../../refusal.js'
import { codeOf } from '../files/paths.js'
import type { BoundTraffic } from './bound-traffic.js'
import { filled, hidden } from './filling.js'
import { SENTENCES } from './outbound.js'
import { written, type Target } from './policy.js'

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
  /** What the server is asked for. */
  readonly host: string
  /** How it is connected. */
  readonly connection: Pick<RequestOptions, 'agent' | 'createConnection'>
  /** What is put in on the way; left out: nothing. */
  readonly bound?: BoundTraffic
}

/** The error as the program gets it. */
export const wrongOf = (error: unknown, target: Target): Wrong => {
  if (error instanceof Refusal) return { status: 403, text: error.message }
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

/** Whether a request asks a server for another host than the one it was connected as. */
const otherHost = ({ host, target }: Onward): string | undefined => {
  const asked = URL.parse(`http://${host}`)?.hostname.replace(/^\[(.*)\]$/, '$1')
  return asked?.toLowerCase() === target.host.toLowerCase() ? undefined : host.slice(0, 200)
}

/** Without this a server may pack its answer, and what is packed twice shows nothing. */
const UNPACKED = ['accept-encoding', 'identity']

const unpacked = (headers: readonly string[]): string[] => [
  ...headers.filter((_, at) => headers[at - (at % 2)]!.toLowerCase() !== UNPACKED[0]),
  ...UNPACKED,
]

/** Sends a request on and gives its answer back. */
export const forward = async (asked: IncomingMessage, answer: ServerResponse, onward: Onward): Promise<void> => {
  const { target, secure, bound, host, path, connection } = onward
  const method = asked.method ?? 'GET'
  const other = otherHost(onward)
  const to = { ...target, method, secure, ...(other !== undefined && { other }) }
  const masker = bound?.opens(target.host) ? await bound.masker(target.host) : undefined
  const all = masker ? unpacked(travelling(asked)) : travelling(asked)
  const { headers, body } = bound ? await filled(asked, all, to, bound) : { headers: all, body: asked }
  const close = connection.agent ? [] : ['connection', 'close']
  const sent = request({ ...connection, method, path, setHost: false, headers: ['host', host, ...headers, ...close] })
  sent.once('response', came => {
    const plain = travelling(came)
    const shown = masker && hidden(came, plain, masker)
    if (masker && !shown) {
      came.destroy()
      return answerWrong(answer, {
        status: 502,
        text: `${written(target)} answers packed in a way that cannot be read`,
      })
    }
    answer.writeHead(came.statusCode ?? 502, came.statusMessage, shown?.headers ?? plain)
    // The types of `pipeline` know no list whose first is read and whose last is written.
    const ways: readonly [Readable, ...Transform[]] = shown?.body ?? [came]
    pipeline([...ways, answer], () => void (connection.agent ? undefined : sent.destroy()))
  })
  // It came paused, so that nothing of it is lost.
  sent.once('socket', socket => socket.resume())
  sent.on('error', error => (answer.headersSent ? void answer.destroy() : answerWrong(answer, wrongOf(error, target))))
  answer.once('close', () => answer.writableFinished || sent.destroy())
  if (Buffer.isBuffer(body)) sent.end(body)
  else pipeline(body, sent, () => {})
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
