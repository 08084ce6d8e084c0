import type { Context } from './contract.js'
import type { Answer, Link } from './host.js'
import { Refusal, type RefusalBody } from './refusal.js'

interface RequestMessage {
  kind: 'request'
  id: number
  call: string
  input: unknown
  /** The context of a call into a plugin, without its signal, which is sent as `cancel`. */
  context?: Omit<Context, 'signal' | 'frames'>
  /** The context has frames; the receiver requests them with the call `wire.frames`. */
  frames?: boolean
  /** The id of the other side's request that this one is made for. */
  as?: number
}
interface ReplyMessage {
  kind: 'reply'
  id: number
  value?: unknown
  stream?: true
}
interface RefuseMessage {
  kind: 'refuse'
  id: number
  body: RefusalBody
  retryAfter?: number
  headers?: { readonly [name: string]: string }
}
interface PullMessage {
  kind: 'pull'
  id: number
}
interface CancelMessage {
  kind: 'cancel'
  id: number
}
interface NextMessage {
  kind: 'next'
  id: number
  value?: unknown
  done: boolean
}

/** One message between the daemon and a plugin's process. `id` pairs an answer with its request. */
export type Message = RequestMessage | ReplyMessage | RefuseMessage | PullMessage | CancelMessage | NextMessage

/** A message channel; a process with an IPC channel has this shape. */
export interface Pipe {
  send(message: Message): unknown
  on(event: 'message', listener: (message: any) => void): unknown
}

export interface PeerOptions {
  readonly signal?: AbortSignal
  /** The context of the call, sent along. */
  readonly context?: Context
  /** Makes the call on behalf of the request with this context. */
  readonly as?: Context
}

/** One end of a plugin's pipe: sends requests to the other side, and answers its requests. */
export class Peer implements Link {
  answer: Answer = async () => undefined
  /** Answers a request of the other side; `as` is the context it is made for, if any. */
  answerFor: (call: string, input: unknown, options: { signal: AbortSignal; as?: Context }) => Promise<unknown> = (
    call,
    input,
    { signal, as },
  ) => this.answer(call, input, { ...NOBODY, ...as, signal })
  #pipe: Pipe
  #next = 0
  #broken?: Error
  #waiting = new Map<number, { resolve: (message: Message) => void; reject: (error: Error) => void }>()
  /** Contexts of this side's requests that have not ended. */
  #given = new Map<number, Context>()
  /** The ids of the other side's requests, by the context that this side received for them. */
  #received = new WeakMap<Context, number>()
  #streams = new Map<number, AsyncIterator<unknown>>()
  #running = new Map<number, AbortController>()

  constructor(pipe: Pipe) {
    this.#pipe = pipe
    pipe.on('message', (message: Message) => void this.#receive(message))
  }

  /** Fails all pending and later requests, because the other side has gone. */
  break(error: Error): void {
    this.#broken = error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
    for (const running of this.#running.values()) running.abort()
    for (const stream of this.#streams.values()) void stream.return?.()
  }

  async request(call: string, input: unknown, { as, ...options }: PeerOptions = {}): Promise<unknown> {
    return this.#asked(call, input, as && this.#received.get(as), options)
  }

  async #asked(
    call: string,
    input: unknown,
    as: number | undefined,
    { signal, context }: Omit<PeerOptions, 'as'> = {},
  ): Promise<unknown> {
    signal?.throwIfAborted()
    const id = ++this.#next
    const cancel = () => this.#send({ kind: 'cancel', id })
    signal?.addEventListener('abort', cancel, { once: true })
    if (context) this.#given.set(id, context)
    const finish = () => {
      signal?.removeEventListener('abort', cancel)
      this.#given.delete(id)
    }
    try {
      const first = await this.#ask({
        kind: 'request',
        id,
        call,
        input,
        ...(context && {
          context: { caller: context.caller, trusted: context.trusted, ...(context.http && { http: context.http }) },
        }),
        ...(context?.frames && { frames: true }),
        ...(as !== undefined && { as }),
      })
      if (first.kind === 'reply' && first.stream) {
        const pieces = this.#pulled(id, finish)
        return first.value === undefined ? pieces : { ...(first.value as object), data: pieces }
      }
      finish()
      return (first as ReplyMessage).value
    } catch (error) {
      finish()
      throw error
    }
  }

  #send(message: Message): void {
    if (!this.#broken) this.#pipe.send(message)
  }

  /** Sends a message and waits for its answer; throws a refusal. */
  async #ask(message: RequestMessage | PullMessage): Promise<Message> {
    if (this.#broken) throw this.#broken
    const reply = await new Promise<Message>((resolve, reject) => {
      this.#waiting.set(message.id, { resolve, reject })
      this.#send(message)
    })
    if (reply.kind !== 'refuse') return reply
    const refusal = Refusal.parse(reply.body)
    throw new Refusal(refusal.reason, refusal.message, {
      ...{ ...refusal.detail, retryAfter: reply.retryAfter },
      ...(reply.headers && { headers: reply.headers }),
    })
  }

  async *#pulled(id: number, finish: () => void): AsyncIterable<unknown, unknown> {
    let open = true
    try {
      for (;;) {
        const message = await this.#ask({ kind: 'pull', id })
        if (message.kind !== 'next') return undefined
        open = !message.done
        if (message.done) return message.value
        yield message.value
      }
    } finally {
      if (open) this.#send({ kind: 'cancel', id })
      finish()
    }
  }

  async #receive(message: Message): Promise<void> {
    const { id } = message
    try {
      if (message.kind === 'request') return await this.#run(message)
      if (message.kind === 'pull') return await this.#pull(id)
      if (message.kind === 'cancel') return await this.#cancel(id)
    } catch (error) {
      this.#running.delete(id)
      this.#streams.delete(id)
      const { body, detail } = Refusal.from(error)
      return this.#send({
        kind: 'refuse',
        id,
        body,
        ...(detail.retryAfter !== undefined && { retryAfter: detail.retryAfter }),
        ...(detail.headers && { headers: detail.headers }),
      })
    }
    this.#waiting.get(id)?.resolve(message)
    this.#waiting.delete(id)
  }

  async #run({ id, call, input, context, frames, as }: RequestMessage): Promise<void> {
    const controller = new AbortController()
    this.#running.set(id, controller)
    const { signal } = controller
    const given = as === undefined ? undefined : this.#given.get(as)
    const value = context
      ? await this.#answered(id, call, input, { ...context, signal, ...(frames && { frames: this.#framesOf(id) }) })
      : call === FRAMES
        ? given?.frames
        : await this.answerFor(call, input, { signal, ...(given && { as: given }) })
    const data = (value as { data?: unknown } | undefined)?.data
    const pieces = isStream(value) ? value : isStream(data) ? data : undefined
    if (pieces) {
      this.#streams.set(id, pieces[Symbol.asyncIterator]())
      return this.#send({
        kind: 'reply',
        id,
        stream: true,
        ...(pieces === data && { value: { ...(value as object), data: undefined } }),
      })
    }
    this.#running.delete(id)
    this.#send({ kind: 'reply', id, value })
  }

  #answered(id: number, call: string, input: unknown, context: Context): Promise<unknown> {
    this.#received.set(context, id)
    return this.answer(call, input, context)
  }

  /** The socket frames of the other side's request. */
  async *#framesOf(id: number): AsyncIterable<unknown> {
    const frames = await this.#asked(FRAMES, {}, id)
    if (isStream(frames)) yield* frames
  }

  async #pull(id: number): Promise<void> {
    const { value, done = false } = (await this.#streams.get(id)?.next()) ?? { value: undefined, done: true }
    if (done) {
      this.#streams.delete(id)
      this.#running.delete(id)
    }
    this.#send({ kind: 'next', id, value, done })
  }

  async #cancel(id: number): Promise<void> {
    this.#running.get(id)?.abort()
    this.#running.delete(id)
    const stream = this.#streams.get(id)
    this.#streams.delete(id)
    await stream?.return?.()
  }
}

const FRAMES = 'wire.frames'

const NOBODY: Omit<Context, 'signal'> = {
  caller: { kind: 'plugin', actor: 'sandbox:kernel', role: 'owner' },
  trusted: true,
}

export const isStream = (value: unknown): value is AsyncIterable<unknown, unknown> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value
