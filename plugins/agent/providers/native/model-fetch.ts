import { Agent as PlainAgent, request as plainRequest, type IncomingMessage } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { pipeline, type Readable, type Transform } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { askableWay, type AskableWay } from '../../../../sdk/node/network/askable.js'
import { CLOSED, SENTENCES } from '../../../../sdk/node/network/failure-words.js'
import { refusedByProxy } from '../../../../sdk/node/network/upstream.js'
import { faultOf, lost, refusalWords, ServerFault, withoutSecrets } from './faults.js'
import { ignored, Refusal } from '../../../../sdk/index.js'

/** The limits of one answer of a model server. */
export interface AnswerLimits {
  readonly bytes: number
  /** The longest silence. */
  readonly silenceMs: number
}

export const ANSWER_LIMITS: AnswerLimits = { bytes: 32 * 1024 * 1024, silenceMs: 600_000 }

/** A placeholder for provider packages that require a key; never sent. */
export const NO_KEY = 'not-sent'

const REDIRECTS = new Set([301, 302, 307, 308])
const MOST_REDIRECTS = 5
const MOST_REFUSAL = 64 * 1024
const REFUSAL_MS = 2000

const agents = { 'http:': new PlainAgent({ keepAlive: true }), 'https:': new SecureAgent({ keepAlive: true }) }

interface Sending {
  readonly headers: { readonly [name: string]: string }
  readonly body: string
  readonly signal: AbortSignal
  readonly limits: AnswerLimits
}

/**
 * The `fetch` of a model server: adds its headers, follows redirects within its origin alone, and ends answers that are
 * too large or silent for too long. Refusals are thrown as `ServerFault`. `heard` is called with the headers and
 * the status of every answer.
 */
export const modelFetch =
  (
    own: { readonly [name: string]: string },
    limits: AnswerLimits = ANSWER_LIMITS,
    heard: (headers: IncomingMessage['headers'], status: number) => void = () => {},
  ): typeof fetch =>
  async (input, { headers, body, signal } = {}) => {
    const start = new URL(input instanceof Request ? input.url : String(input))
    const sending = {
      headers: headersOf(headers, own),
      body: String(body ?? ''),
      signal: signal ?? new AbortController().signal,
      limits,
    }
    let url = start
    for (let hops = 0; ; hops++) {
      const answer = await send(url, sending)
      const status = answer.statusCode ?? 0
      const { location } = answer.headers
      if (REDIRECTS.has(status) && location !== undefined) {
        answer.destroy()
        url = redirected(start, url, location, hops)
        continue
      }
      heard(answer.headers, status)
      if (status < 200 || status > 299) throw await refusalOf(answer, own)
      if (/^text\/html\b/i.test(answer.headers['content-type'] ?? '')) {
        answer.destroy()
        throw new ServerFault('the model server sent a web page instead of an answer: check its address')
      }
      return new Response(bodyOf(unpacked(answer), sending), {
        headers: { 'content-type': answer.headers['content-type'] ?? 'text/event-stream' },
      })
    }
  }

const UNPACKING: { readonly [encoding: string]: () => Transform } = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** The bytes of an answer, which some servers compress without being asked to; its size counts unpacked. */
const unpacked = (answer: IncomingMessage): Readable => {
  const unpack = UNPACKING[(answer.headers['content-encoding'] ?? '').trim().toLowerCase()]
  return unpack ? pipeline(answer, unpack(), ignored('whoever reads the answer gets the failure')) : answer
}

const headersOf = (
  given: ConstructorParameters<typeof Headers>[0],
  own: { readonly [name: string]: string },
): { [name: string]: string } => {
  const headers = new Headers(given)
  for (const [name, value] of headers) if (value.includes(NO_KEY)) headers.delete(name)
  for (const [name, value] of Object.entries(own)) headers.set(name, value)
  return Object.fromEntries(headers)
}

const redirected = (start: URL, from: URL, location: string, hops: number): URL => {
  const to = URL.parse(location, from.href)
  if (!to || to.origin !== start.origin)
    throw new ServerFault(
      `the model server redirects to another origin (${(to?.origin ?? 'no address').slice(0, 200)}): `
        + 'set that as its address if it is right',
    )
  if (hops === MOST_REDIRECTS)
    throw new ServerFault(`the model server redirects more than ${MOST_REDIRECTS} times: check its address`)
  return to
}

/** Sends the request; silently replaces a kept connection that turns out to be closed. */
const send = async (url: URL, sending: Sending): Promise<IncomingMessage> => {
  for (;;) {
    const { answer, stale, error } = await once(url, sending)
    if (answer) return answer
    sending.signal.throwIfAborted()
    if (!stale) throw error
  }
}

interface Sent {
  readonly answer?: IncomingMessage
  readonly error?: unknown
  readonly stale?: boolean
}

const failureOf = (error: NodeJS.ErrnoException): ServerFault => {
  if (error instanceof Refusal) return new ServerFault(error.message)
  const { code = '', message } = error
  return error instanceof ServerFault ? error : lost(SENTENCES[code] ?? (code || message))
}

const once = async (url: URL, sending: Sending): Promise<Sent> => {
  const agent = agents[url.protocol === 'https:' ? 'https:' : 'http:']
  try {
    return await onceBy(await askableWay(url, agent, sending.signal), url, sending)
  } catch (error) {
    return { error: failureOf(error as Error) }
  }
}

const onceBy = ({ options, proxy }: AskableWay, url: URL, { headers, body, signal, limits }: Sending): Promise<Sent> =>
  new Promise(resolve => {
    const secure = url.protocol === 'https:'
    const request = (secure ? secureRequest : plainRequest)(url, {
      ...options,
      method: 'POST',
      headers: { ...headers, ...options.headers },
      signal,
    })
    const quiet = setTimeout(() => request.destroy(silent(limits)), limits.silenceMs)
    request.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(quiet)
      const stale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
      resolve({ error: failureOf(error), stale })
    })
    // A server that switches the protocol makes no other event.
    request.once('close', () => {
      clearTimeout(quiet)
      resolve({ error: lost(CLOSED) })
    })
    request.on('response', answer => {
      clearTimeout(quiet)
      const refused = secure ? undefined : refusedByProxy(proxy, answer)
      resolve(refused ? { error: new ServerFault(refused.message) } : { answer })
    })
    request.end(body)
  })

const silent = ({ silenceMs }: AnswerLimits): ServerFault =>
  new ServerFault(
    `the model server sent nothing for ${Math.round(silenceMs / 1000)} seconds: check that it is not stuck`,
    { code: 'provider-outage' },
  )

/** The answer's bytes, read as fast as they are taken. */
const bodyOf = (answer: Readable, { limits }: Sending): ReadableStream<Uint8Array> => {
  const pieces = answer.iterator({ destroyOnReturn: true })
  let left = limits.bytes
  return new ReadableStream(
    {
      pull: async controller => {
        const quiet = setTimeout(() => answer.destroy(silent(limits)), limits.silenceMs)
        try {
          const { value, done } = (await pieces.next()) as { value: Buffer; done?: boolean }
          if (done) return controller.close()
          left -= value.length
          if (left < 0) throw new ServerFault(`the model's answer is over ${limits.bytes} bytes`)
          controller.enqueue(new Uint8Array(value))
        } catch (error) {
          answer.destroy()
          controller.error(error instanceof ServerFault ? error : lost('it was closed in the middle of an answer'))
        } finally {
          clearTimeout(quiet)
        }
      },
      cancel: () => void answer.destroy(),
    },
    { highWaterMark: 0 },
  )
}

/** The refusal in an answer, within two seconds, however slowly its words come. */
const refusalOf = async (answer: IncomingMessage, own: { readonly [name: string]: string }): Promise<ServerFault> => {
  const { statusCode = 0, headers } = answer
  let text = ''
  const read = async (): Promise<void> => {
    for await (const piece of answer) {
      text += String(piece)
      if (text.length > MOST_REFUSAL) return
    }
  }
  await Promise.race([read().catch(ignored('the status says enough')), delay(REFUSAL_MS)])
  answer.destroy()
  const keyless = !['authorization', 'x-api-key'].some(name => own[name] !== undefined)
  return faultOf(statusCode, withoutSecrets(refusalWords(parsed(text)), own), waitOf(headers), keyless)
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The delay of `retry-after`, which is in seconds or a date. */
const waitOf = ({ 'retry-after': after, 'retry-after-ms': exact }: IncomingMessage['headers']): number | undefined => {
  const ms = exact === undefined ? NaN : Number(exact)
  if (Number.isFinite(ms)) return Math.max(0, ms)
  if (after === undefined) return undefined
  const wait = /^\d+(\.\d+)?$/.test(after.trim()) ? Number(after) * 1000 : Date.parse(after) - Date.now()
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined
}
