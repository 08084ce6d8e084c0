import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ServerResponse } from 'node:http'
import type { Bytes, Position } from '../../sdk/contract.js'
import { Refusal } from '../../sdk/refusal.js'
import type { Live } from '../../sdk/node/live/live.js'
import type { Sink } from '../../sdk/node/live/watcher.js'
import { isPosition, isWatch } from '../services.js'
import type { JournalStore } from '../storage/journal.js'

/** Everything an answer is written with. */
export interface ReplyContext {
  readonly res: ServerResponse
  readonly journals: JournalStore
  readonly live: Live
  readonly signal: AbortSignal
  /** Headers of the request that decide the form of the answer. */
  readonly ifNoneMatch?: string
  readonly lastEventId?: string
  readonly head: boolean
}

const HEARTBEAT = 15_000
const HEAD_WAIT = 1_000
const COMMENT = Buffer.from(': \n\n')

/** Writes a value as one JSON answer; with `etag` also its tag, and 304 where the asker holds it (RFC 9110, section 13.1.2). */
export const sendValue = ({ res, head, ifNoneMatch }: ReplyContext, value: unknown, etag: boolean): void => {
  const body = JSON.stringify(value)
  if (etag) {
    const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    res.setHeader('etag', tag)
    res.setHeader('cache-control', 'no-cache')
    if (ifNoneMatch?.split(',').some(one => one.trim().replace(/^W\//, '') === tag)) return void res.writeHead(304).end()
  }
  sendJson(res, 200, body, head)
}

/** One string, so that head and body leave in one write. */
const sendJson = (res: ServerResponse, status: number, body: string, head: boolean): void => {
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body) })
  res.end(head ? undefined : body)
}

/** Writes bytes with their type; a handler's own headers win over the general ones. */
export const sendBytes = (context: ReplyContext, value: Bytes): void => {
  const { res, head, ifNoneMatch } = context
  const body = Buffer.from(value.data as string)
  const tag = value.headers?.etag
  if (tag && ifNoneMatch === tag) return void res.writeHead(304, { ...value.headers }).end()
  res.writeHead(200, { ...value.headers, 'content-type': value['content-type'], 'content-length': body.length })
  res.end(head ? undefined : body)
}

/** Writes a refusal, or ends an answer that has begun. */
export const sendRefusal = ({ res, head }: Pick<ReplyContext, 'res' | 'head'>, refusal: Refusal): void => {
  if (res.headersSent) return void res.destroy()
  const { retryAfter } = refusal.detail
  if (retryAfter !== undefined) res.setHeader('retry-after', Math.max(1, Math.ceil(retryAfter)))
  sendJson(res, refusal.status, JSON.stringify(refusal.body), head)
}

/**
 * Writes events as they come, and then the journal or the sandbox's own events that they go on with.
 *
 * A stream refused before its first event is an ordinary refusal; one that is silent for a second gets its headers, so
 * that the client knows it is heard.
 */
export const sendStream = async (context: ReplyContext, events: AsyncIterable<unknown, unknown>): Promise<void> => {
  const { res, signal } = context
  const iterator = events[Symbol.asyncIterator]()
  let next = iterator.next()
  try {
    await Promise.race([next, delay(HEAD_WAIT, undefined, { signal, ref: false }).catch(() => {})])
    begin(res)
    for (;;) {
      const { value, done } = await withHeartbeat(res, next)
      if (signal.aborted) return
      if (done) return isPosition(value) ? await sendJournal(context, value) : end(res, 'done', value ?? {})
      if (isWatch(value)) return await context.live.serve(sinkOf(res), value.watch, context.lastEventId, signal)
      if (!res.write(encode('message', value))) await drained(res, signal)
      next = iterator.next()
    }
  } catch (error) {
    const refusal = Refusal.from(error)
    if (!res.headersSent) throw error
    if (!signal.aborted) end(res, 'error', refusal.body)
    if (refusal.reason === 'failed') throw error
  } finally {
    void iterator.return?.()
    if (signal.aborted) res.destroy()
  }
}

/** The body ends with the connection, so that stored bytes go to the socket as they are, without chunk heads. */
const begin = (res: ServerResponse): void => {
  res.removeHeader('transfer-encoding')
  res.shouldKeepAlive = false
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no', connection: 'close' })
  res.flushHeaders()
  res.write('retry: 1000\n\n')
}

const sendJournal = async ({ res, journals, signal }: ReplyContext, { journal, after }: Position): Promise<void> => {
  await journals.pump(journal, after, res, signal, { idle: { every: HEARTBEAT, write: COMMENT } })
  if (!signal.aborted) res.end()
}

/** A response whose bytes count as accepted when the system has taken them. */
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

const drained = (res: ServerResponse, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const go = () => {
      res.off('drain', go)
      signal.removeEventListener('abort', go)
      resolve()
    }
    res.once('drain', go)
    signal.addEventListener('abort', go, { once: true })
  })

const encode = (event: 'message' | 'done' | 'error', data: unknown): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`

const end = (res: ServerResponse, event: 'done' | 'error', data: unknown): void => void res.end(encode(event, data))
