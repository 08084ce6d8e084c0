import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { STATUS_CODES, type ServerResponse } from 'node:http'
import { isIdentified, isPosition, isWatch, type GivenBytes, type Position } from '../../sdk/contract.js'
import { drained } from '../../sdk/node/concurrency/drained.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import { namesTag } from '../../sdk/node/pages/entity-tag.js'
import { MESSAGE_PAGE_HEADERS, messagePage } from '../../sdk/node/pages/message-page.js'
import { etagOf } from './tagged.js'
import { Refusal } from '../../sdk/refusal.js'
import type { Sink } from '../streams/watcher.js'
import type { Lines } from './head-lines.js'
import type { KernelServices } from '../services.js'
import { ignored } from '../../sdk/ignored.js'

/** What an answer is written with. */
export interface HttpReply {
  readonly res: ServerResponse
  readonly lines: Lines
  /** Send only the headers: the request was `HEAD`. */
  readonly head: boolean
}

/** What a stream is written with. */
export interface StreamReply extends HttpReply {
  readonly kernel: Pick<KernelServices, 'journals' | 'live'>
  readonly signal: AbortSignal
  /** The last event that the client received. */
  readonly lastEventId?: string
}

const HEARTBEAT = 15_000
const HEAD_WAIT = 1_000
const LEAVE_WAIT = 5_000
const COMMENT = Buffer.from(': \n\n')

/**
 * Sends a value as JSON; with `etag` also its ETag, or 304 if the client has this version (RFC 9110, section 13.1.2).
 */
export const sendValue = (reply: HttpReply, value: unknown, etag = false, ifNoneMatch?: string): void => {
  const { res, lines } = reply
  const body = JSON.stringify(value)
  if (etag) {
    const tag = etagOf(body)
    lines.set('etag', tag).set('cache-control', 'no-cache')
    if (namesTag(ifNoneMatch, tag)) return void lines.write(res, 304).end()
  }
  sendJson(reply, 200, body)
}

/** Passes the body as one string, so that head and body are sent in one write. */
const sendJson = ({ res, lines, head }: HttpReply, status: number, body: string): void => {
  lines
    .set('content-type', 'application/json; charset=utf-8')
    .set('content-length', Buffer.byteLength(body))
    .write(res, status)
  res.end(head ? undefined : body)
}

/** Sends bytes with their content type; the handler's headers override the general ones. */
export const sendBytes = async (
  { res, lines, head }: HttpReply,
  value: GivenBytes,
  ifNoneMatch?: string,
): Promise<void> => {
  const { data, headers = {}, status = 200 } = value
  lines.setAll(headers)
  if (headers.etag && namesTag(ifNoneMatch, headers.etag)) return void lines.write(res, 304).end()
  lines.set('content-type', value['content-type'])
  if (typeof data === 'string' || data instanceof Uint8Array) {
    const body = Buffer.from(data as string)
    lines.set('content-length', body.length).write(res, status)
    return void res.end(head ? undefined : body)
  }
  lines.write(res, status)
  if (head) return void res.end()
  // Ignored: the client disconnected.
  await pipeline(data, res).catch(error =>
    codeOf(error) === 'ERR_STREAM_PREMATURE_CLOSE' ? undefined : Promise.reject(error),
  )
}

/** Sends a refusal, or closes the connection of an answer that has begun. */
export const sendRefusal = (reply: HttpReply, refusal: Refusal, asPage = false): void => {
  if (reply.res.headersSent) return void reply.res.destroy()
  const { retryAfter } = refusal.detail
  if (refusal.detail.headers) reply.lines.setAll(refusal.detail.headers)
  if (refusal.reason === 'range') reply.lines.set('content-range', `bytes */${String(refusal.body.sizeBytes)}`)
  if (retryAfter !== undefined) reply.lines.set('retry-after', Math.max(1, Math.ceil(retryAfter)))
  if (!asPage) return sendJson(reply, refusal.status, JSON.stringify(refusal.body))
  const html = Buffer.from(messagePage(STATUS_CODES[refusal.status] ?? 'Not served', refusal.message))
  reply.lines.setAll({ ...MESSAGE_PAGE_HEADERS, 'x-robots-tag': 'noindex', 'content-length': html.length })
  reply.lines.write(reply.res, refusal.status).end(reply.head ? undefined : html)
}

/**
 * Refuses a stream to a browser's `EventSource`, which stops reconnecting at any status but 200 (HTML standard, section
 * 9.2.2): answers 200 with a `retry` time and an `error` event.
 */
export const sendRetry = (reply: HttpReply, refusal: Refusal): void => {
  begin(reply)
  reply.res.write(`retry: ${Math.max(1, Math.ceil(refusal.detail.retryAfter ?? 5)) * 1000}\n\n`)
  end(reply.res, 'error', refusal.body)
}

/** Answers 405: the path does not take this method. */
export const refuseMethod = (reply: HttpReply, message: string): void =>
  sendJson(reply, 405, JSON.stringify({ message, reason: 'invalid' }))

/** Answers 426: the path is a WebSocket and the request is not an upgrade (RFC 9110, section 15.5.22). */
export const askUpgrade = (reply: HttpReply, message: string): void => {
  reply.lines.setAll({
    upgrade: 'websocket',
    connection: reply.res.shouldKeepAlive ? 'upgrade' : 'upgrade, close',
    'sec-websocket-version': 13,
  })
  sendJson(reply, 426, JSON.stringify({ message, reason: 'invalid' }))
}

/**
 * Sends events as they come; a stream may continue with a journal, or with the events of the sandbox.
 *
 * A refusal before the first event is an ordinary error answer. A stream without an event for 1 s gets its headers, so
 * that the client knows that it is connected.
 */
export const sendStream = async (context: StreamReply, events: AsyncIterable<unknown, unknown>): Promise<void> => {
  const { res, signal } = context
  const iterator = events[Symbol.asyncIterator]()
  let next = iterator.next()
  let between = true
  try {
    await Promise.race([next, delay(HEAD_WAIT, undefined, { signal, ref: false }).catch(ignored('the request ended'))])
    begin(context)
    for (;;) {
      const { value, done } = await withHeartbeat(res, next)
      // It says why it ends, also one that was ended before it began.
      if (isWatch(value)) return await context.kernel.live.serve(sinkOf(res), value.watch, context.lastEventId, signal)
      if (signal.aborted) return
      between = !isPosition(value)
      if (done) return isPosition(value) ? await sendJournal(context, value) : end(res, 'done', value ?? {})
      if (
        !res.write(
          isIdentified(value)
            ? `id: ${value['event-id']}\n${encode('message', value.event)}`
            : encode('message', value),
        )
      )
        await drained(res, signal)
      next = iterator.next()
    }
  } catch (error) {
    const refusal = Refusal.from(error)
    if (!res.headersSent) throw error
    if (!signal.aborted) end(res, 'error', refusal.body)
    if (refusal.reason === 'failed') throw error
  } finally {
    void iterator.return?.()
    if (signal.aborted) leave(res, signal, between)
  }
}

/**
 * Ends a stream that was aborted: with why, if its credential ended and no event is half sent. A client that does not
 * read is not waited for.
 */
const leave = (res: ServerResponse, { reason }: AbortSignal, between: boolean): void => {
  if (!(reason instanceof Refusal) || !res.headersSent || res.writableEnded) return void res.destroy()
  res.end(between ? encode('error', reason.body) : '')
  setTimeout(() => res.destroy(), LEAVE_WAIT).unref()
}

/**
 * Uses chunked encoding (RFC 9112, section 7.1), so that a client can distinguish a cut connection from a finished
 * stream.
 */
const begin = ({ res, lines }: Pick<HttpReply, 'res' | 'lines'>): void => {
  lines.setAll({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' }).write(res, 200)
  res.flushHeaders()
  res.write('retry: 1000\n\n')
}

const sendJournal = async ({ res, kernel, signal }: StreamReply, { journal, after }: Position): Promise<void> => {
  await kernel.journals.pump(journal, after, res, signal, {
    idle: { every: HEARTBEAT, write: COMMENT },
    last: ({ reason }) => (reason instanceof Refusal ? Buffer.from(encode('error', reason.body)) : undefined),
  })
  if (!signal.aborted) res.end()
}

/** A sink over a response; bytes count as accepted once the operating system has taken them. */
const sinkOf = (res: ServerResponse): Sink => ({
  write: (bytes, accepted) => void res.write(bytes, () => accepted()),
  end: (bytes, accepted) => void res.end(bytes, () => accepted()),
  cut: () => void res.destroy(),
})

const withHeartbeat = async <T>(res: ServerResponse, next: Promise<T>): Promise<T> => {
  const timer = setInterval(() => res.write(COMMENT), HEARTBEAT)
  try {
    return await next
  } finally {
    clearInterval(timer)
  }
}

const encode = (event: 'message' | 'done' | 'error', data: unknown): string =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`

const end = (res: ServerResponse, event: 'done' | 'error', data: unknown): void => void res.end(encode(event, data))
