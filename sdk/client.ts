import type { Api } from './api.js'
import type { Bytes, Call, Input, Reply, Sockets } from './contract.js'
import { readEvents, TooLong } from './events.js'
import { type Reason, Refusal, type RefusalBody, refuse, STATUS } from './refusal.js'

type AttachData = Reply<Api, 'POST /agent/attach'> extends AsyncIterable<infer Event> ? Event : never

/** How an interrupted stream reconnects: attempts without new data, and the waits between them in milliseconds. */
export interface Retry {
  readonly attempts?: number
  /** The first wait, unless the daemon sets it with `retry:`; each further one is twice as long. */
  readonly first?: number
  readonly most?: number
  /** Milliseconds without a byte after which a stream counts as cut; the daemon sends a comment every 15 s. */
  readonly silence?: number
}

/** Which daemon a client talks to, and as whom. */
export interface ClientOptions {
  /** The daemon's address, such as `http://127.0.0.1:8787`. */
  readonly url: string
  /** A person's session. */
  readonly session?: string
  /** Returns a new session when the daemon no longer accepts the current one; the call is then repeated once. */
  readonly renew?: () => Promise<string>
  /** A program's control token. */
  readonly token?: string
  /** The credential of a run of the command line, as `SANDBOX_RUN_TOKEN` has it. */
  readonly run?: string
  readonly fetch?: typeof fetch
  readonly retry?: Retry
}

/** The calls that a client can make: all routes except WebSockets. */
export type Routed = Exclude<Extract<Call<Api>, `${string} /${string}`>, Sockets<Api>>

/** How one call is made. */
export interface ClientCallOptions {
  readonly signal?: AbortSignal
  /** Of a stream: called with the id of each event, before the event is delivered. */
  readonly onEventId?: (id: string) => void
  /** Of a stream that does something: when it is cut, it is not asked for again. */
  readonly once?: boolean
}

/** The arguments of a call: its input, which may be left out where every field may, and options. */
type ClientArgs<I> = [I] extends [void]
  ? [input?: undefined, options?: ClientCallOptions]
  : {} extends I
    ? [input?: I, options?: ClientCallOptions]
    : [input: I, options?: ClientCallOptions]

/** A typed client of one daemon. */
export interface Client {
  /**
   * Makes a call and returns its answer; throws the daemon's `Refusal`, or `Unreached` without an answer.
   *
   * A stream is an async iterable that reconnects and resumes where it was cut, without repeated or missing events.
   */
  call<C extends Routed>(call: C, ...args: ClientArgs<Input<Api, C>>): Promise<Reply<Api, C>>
}

/** The daemon did not answer at all, or stopped answering. */
export class Unreached extends Refusal {
  constructor(message: string, cause?: unknown) {
    super('unavailable', message, { cause })
    this.name = 'Unreached'
  }
}

interface Send {
  (last: string, signal: AbortSignal | undefined, body?: object): Promise<Response>
}

/** The event stream has a heartbeat every 5 s. */
const EVENTS_SILENCE = 15_000
const ONCE: Retry = { attempts: 0 }

/** Builds a client. It holds no route table: a call's name is its method and path. */
export const createClient = (options: ClientOptions): Client => {
  const { token, run, renew, fetch: ask = fetch, retry = {} } = options
  const url = options.url.replace(/\/+$/, '')
  let { session } = options
  return {
    async call(call, ...[input, { signal, onEventId, once } = {}]) {
      const { method, path, rest } = addressed(call, { ...(input as object | undefined) })
      const address = url + path + (method === 'GET' ? queryOf(rest) : '')
      const attempt: Send = (last, signal, body = rest) =>
        ask(address, {
          method,
          redirect: 'error',
          headers: {
            ...(session && { authorization: `Bearer ${session}` }),
            ...(token && { 'x-sandbox-control': token }),
            ...(run && { 'x-sandbox-run': run }),
            ...(method !== 'GET' && { 'content-type': 'application/json' }),
            ...(last && { 'last-event-id': last }),
          },
          ...(method !== 'GET' && { body: JSON.stringify(body) }),
          ...(signal && { signal }),
        }).catch(error => unreached(url, error, signal))
      const send: Send = async (...asked) => {
        const refused = session
        const response = await attempt(...asked)
        if (response.ok) return response
        if (response.status !== 401 || !renew || token) return refusal(response, url, signal)
        await response.body?.cancel()
        if (session === refused) session = await renew()
        const again = await attempt(...asked)
        return again.ok ? again : refusal(again, url, signal)
      }
      const response = await send('', signal)
      const type = response.headers.get('content-type') ?? ''
      if (type.startsWith('text/event-stream')) {
        const resume = call === 'POST /agent/attach' ? new AttachResume(rest) : new PlainResume(onEventId)
        return follow(
          response,
          send,
          resume,
          once ? ONCE : call === 'GET /events' ? { silence: EVENTS_SILENCE, ...retry } : retry,
          signal,
        ) as never
      }
      const read = type.startsWith('application/json')
        ? response.text().then(text => parsed(text))
        : bytes(type, response)
      return (await read.catch(error =>
        error instanceof Refusal ? Promise.reject(error) : unreached(url, error, signal),
      )) as never
    },
  }
}

const addressed = (call: string, rest: { [key: string]: unknown }) => {
  const [method = '', template = ''] = call.split(' ')
  const path = template.replace(/\{(\w+)\}/g, (_, key: string) => {
    const value = rest[key]
    delete rest[key]
    if (typeof value !== 'string' && typeof value !== 'number')
      return refuse('invalid', `${key}: expected text for the path, found ${typeof value}`)
    return encodeURIComponent(value)
  })
  // A URL parser would remove such parts, which would make it another route.
  if (/(^|\/)(\.|%2e){0,2}(\/|$)/i.test(path.slice(1)) && path !== '/')
    refuse('not-found', `expected a path without empty, "." and ".." parts, found ${path.slice(0, 200)}`)
  if (/[?#]/.test(path)) refuse('invalid', 'expected a path without a query; pass its keys as input')
  return { method, path, rest }
}

const queryOf = (input: { [key: string]: unknown }): string => {
  const pairs = Object.entries(input).flatMap(([key, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter(item => item !== undefined)
      .map(item => {
        if (typeof item === 'object')
          refuse('invalid', `${key}: expected text, a number, true or false in a query, found an object`)
        return [key, String(item)] as [string, string]
      }),
  )
  return pairs.length ? `?${new URLSearchParams(pairs)}` : ''
}

const unreached = (url: string, error: unknown, signal: AbortSignal | undefined): never => {
  signal?.throwIfAborted()
  const { message, cause } = error as { message?: string; cause?: { message?: string; code?: string } }
  throw new Unreached(
    `no answer from ${url}: ${cause?.message || cause?.code || message || 'the connection failed'}`,
    error,
  )
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Refusal('failed', 'expected JSON from the daemon, found something else', { cause })
  }
}

const bytes = async (type: string, response: Response): Promise<Bytes> => ({
  'content-type': type,
  data: new Uint8Array(await response.arrayBuffer()),
})

const REASONS = new Map(Object.entries(STATUS).map(([reason, status]) => [status, reason as Reason]))

/**
 * Throws the refusal of a failed response; a response without the contract's body (a proxy's page) keeps its status.
 */
const refusal = async (response: Response, url: string, signal: AbortSignal | undefined): Promise<never> => {
  const text = await response.text().catch(() => '')
  signal?.throwIfAborted()
  const refused =
    rebuilt(text) ?? new Refusal(reasonOf(response.status), `${response.status} without a reason from ${url}`)
  const retryAfter = secondsOf(response.headers.get('retry-after'))
  throw retryAfter === undefined
    ? refused
    : new Refusal(refused.reason, refused.message, { ...refused.detail, retryAfter })
}

const reasonOf = (status: number): Reason =>
  REASONS.get(status) ?? (status >= 502 ? 'unavailable' : status >= 500 ? 'failed' : 'invalid')

const rebuilt = (text: string): Refusal | undefined => {
  try {
    const body = JSON.parse(text) as RefusalBody
    if (typeof body.message === 'string' && Object.hasOwn(STATUS, body.reason)) return Refusal.parse(body)
  } catch {
    // Not an answer of a daemon: its status says what it is.
  }
  return undefined
}

const secondsOf = (header: string | null): number | undefined => {
  if (!header) return undefined
  if (/^\d+$/.test(header)) return Number(header)
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1000))
}

// Streams -----------------------------------------------------------------------------------------------------------

type Verdict = 'new' | 'known' | 'gap' | 'last'

/** Tracks what a stream has delivered, and how to request the rest. */
interface Resume {
  /** Whether an event is new to the reader; `gap`: something before it is missing; `last`: nothing follows it. */
  judge(data: unknown, id: string): Verdict
  readonly last: string
  readonly body?: object
}

/** Resumes any stream after its last event id. */
class PlainResume implements Resume {
  last = ''
  readonly #onEventId: ((id: string) => void) | undefined

  constructor(onEventId?: (id: string) => void) {
    this.#onEventId = onEventId
  }

  judge(_: unknown, id: string): Verdict {
    if (id) this.#onEventId?.(id)
    this.last = id || this.last
    return 'new'
  }
}

/** Resumes a watched run by run and position in the request body; delivers its head and each frame once. */
class AttachResume implements Resume {
  readonly last = ''
  readonly #asked: { readonly run?: string; readonly after?: number }
  #run?: string
  #after?: number

  constructor(asked: object) {
    this.#asked = asked
  }

  get body(): object {
    return {
      ...this.#asked,
      ...(this.#run && { run: this.#run }),
      ...(this.#after !== undefined && { after: this.#after }),
    }
  }

  judge(data: unknown): Verdict {
    const event = data as AttachData
    if (event.kind === 'end') return 'last'
    if (event.kind === 'attached') {
      if (event.run === this.#run) return 'known'
      if ((this.#run ?? this.#asked.run ?? event.run) !== event.run) this.#after = 0
      this.#run = event.run
      return 'new'
    }
    if (event.kind !== 'frame') return 'new'
    const before = this.#after
    if (before !== undefined && event.seq <= before) return 'known'
    if (before !== undefined && this.#run !== undefined && event.seq > before + 1) return 'gap'
    this.#after = event.seq
    return 'new'
  }
}

const wait = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal!.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) return stop()
    signal?.addEventListener('abort', stop, { once: true })
  })

/** Whether a retry may help: no answer, the daemon is starting, or it asked to wait. */
const passing = (error: unknown): error is Refusal =>
  error instanceof Refusal && (error.reason === 'unavailable' || error.reason === 'too-many')

async function* follow(
  first: Response,
  send: Send,
  resume: Resume,
  { attempts = 8, first: firstWait = 500, most = 15_000, silence = 60_000 }: Retry,
  signal?: AbortSignal,
): AsyncGenerator<unknown, unknown> {
  let response: Response | undefined = first
  let failures = 0
  let base = firstWait
  let why: unknown
  while (true) {
    const opened = Date.now()
    let ended = false
    let news = false
    why = undefined
    try {
      response ??= await send(resume.last, signal, resume.body)
      for await (const { event, data, id } of readEvents(response.body!, {
        silence,
        onRetry: ms => {
          base = ms
        },
      })) {
        if (event === 'done') return parsed(data)
        if (event === 'error') throw rebuilt(data) ?? new Refusal('failed', messageOf(data))
        if (event !== 'message') continue
        const value = parsed(data)
        const verdict = resume.judge(value, id)
        if (verdict === 'gap') break
        if (verdict === 'known') continue
        news ||= id !== ''
        ended ||= verdict === 'last'
        yield value
      }
    } catch (error) {
      signal?.throwIfAborted()
      why = error
      if (error instanceof TooLong) throw new Refusal('failed', error.message, { cause: error })
      if (error instanceof Refusal && (response || !passing(error))) throw error
    }
    signal?.throwIfAborted()
    if (ended) return undefined
    failures = news || (response && Date.now() - opened > most) ? 1 : failures + 1
    if (failures > attempts) throw lost(why, attempts)
    const patience = why instanceof Refusal ? (why.detail.retryAfter ?? 0) * 1000 : 0
    response = undefined
    await wait(Math.max(Math.min(base * 2 ** (failures - 1), most) * (1 + Math.random() / 2), patience), signal)
  }
}

const messageOf = (data: string): string => {
  const { message } = (parsed(data) ?? {}) as { message?: unknown }
  return typeof message === 'string' ? message : 'the stream ended with an error without a message'
}

const lost = (why: unknown, attempts: number): Refusal =>
  why instanceof Refusal
    ? why
    : new Unreached(
        attempts === 0
          ? 'the stream was cut before its end'
          : `the stream was cut ${attempts + 1} times in a row without new data`,
        why,
      )
