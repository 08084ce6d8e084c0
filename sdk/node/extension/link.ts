import { BadMessage } from './codec.js'
import {
  MOST_IN_FLIGHT,
  type LinkFailure,
  type LinkMessage,
  type OperationInput,
  type OperationOutput,
  type StreamRef,
} from './protocol.js'
import { ignored } from '../../ignored.js'

/** A request that the other side did not carry out. */
export class LinkError extends Error {
  readonly code: string | undefined
  readonly entry: string | undefined
  readonly status: number | undefined

  constructor({ message, code, entry, status }: LinkFailure, cause?: unknown) {
    super(message, { cause })
    this.name = 'LinkError'
    this.code = code
    this.entry = entry
    this.status = status
  }
}

/** Answers to cancelled requests that are still expected. */
const MOST_CANCELLED = 4 * MOST_IN_FLIGHT

/** How one end of a pipe is used. */
export interface LinkOptions {
  /** Sends a message; throws `BadMessage` when it is too large. */
  readonly send: (message: LinkMessage) => void
  /** Carries out a request of the other side. */
  readonly answer: (op: string, input: unknown, signal: AbortSignal) => Promise<unknown>
  /** The words of an error for the other side. */
  readonly failure: (error: unknown) => LinkFailure
  /** Checks the answer to a request of this side; default: none. */
  readonly checked?: (op: string, output: unknown) => unknown
  /** Numbers of requests and streams begin here. */
  readonly first?: number
}

interface Waiting {
  readonly op: string
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** One end of the pipe between the daemon and the process of an extension. Both ends may ask. */
export class ExtensionLink<Theirs> {
  readonly #options: LinkOptions
  readonly #waiting = new Map<number, Waiting>()
  readonly #running = new Map<number, AbortController>()
  readonly #offered = new Map<number, AsyncIterator<unknown>>()
  /** Offered streams whose next item is being made. */
  readonly #pulling = new Set<number>()
  readonly #pulls = new Map<number, { resolve: (item: IteratorResult<unknown>) => void; reject: (e: Error) => void }>()
  /** Streams of the other side that this side may pull. */
  readonly #theirs = new Set<number>()
  #next: number
  #broken: Error | undefined
  /** Called with each answer to a ping. */
  onPong: () => void = () => {}

  constructor(options: LinkOptions) {
    this.#options = options
    this.#next = options.first ?? 0
  }

  /** How many requests of the other side are not answered. */
  get inFlight(): number {
    return this.#running.size
  }

  /** How many requests of this side are not answered. */
  get asked(): number {
    return this.#waiting.size
  }

  /** Asks the other side. */
  async request<O extends keyof Theirs & string>(
    op: O,
    input: OperationInput<Theirs, O>,
    signal?: AbortSignal,
  ): Promise<OperationOutput<Theirs, O>> {
    signal?.throwIfAborted()
    if (this.#broken) throw this.#broken
    const id = ++this.#next
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const cancel = () => {
      if (!this.#waiting.delete(id)) return
      this.#cancelled.add(id)
      if (this.#cancelled.size > MOST_CANCELLED) this.#cancelled.delete(this.#cancelled.values().next().value!)
      this.#options.send({ kind: 'cancel', id })
      reject(signal!.reason as Error)
    }
    this.#waiting.set(id, { op, resolve, reject })
    try {
      this.#options.send({ kind: 'request', id, op, input })
      signal?.addEventListener('abort', cancel, { once: true })
      return (await promise) as OperationOutput<Theirs, O>
    } finally {
      this.#waiting.delete(id)
      signal?.removeEventListener('abort', cancel)
    }
  }

  /** Requests that were cancelled here and that the other side may still answer. */
  readonly #cancelled = new Set<number>()

  /** Offers a stream: the answered reference goes into a message. It is closed when the other side has read it. */
  offer(items: AsyncIterable<unknown>): StreamRef {
    if (this.#offered.size >= MOST_IN_FLIGHT)
      throw new LinkError({ message: `expected at most ${MOST_IN_FLIGHT} open streams`, code: 'too-many' })
    const stream = ++this.#next
    this.#offered.set(stream, items[Symbol.asyncIterator]())
    return { stream }
  }

  /** The items of a stream that the other side offered; each is asked for when it is read. */
  async *read({ stream }: StreamRef): AsyncGenerator<unknown, void> {
    if (this.#theirs.has(stream)) throw new BadMessage('offered one stream twice')
    this.#theirs.add(stream)
    let over = false
    try {
      for (;;) {
        if (this.#broken) throw this.#broken
        const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<unknown>>()
        this.#pulls.set(stream, { resolve, reject })
        this.#options.send({ kind: 'pull', stream })
        const item = await promise.catch(error => {
          over = true
          throw error
        })
        if (item.done) {
          over = true
          return
        }
        yield item.value
      }
    } finally {
      this.#theirs.delete(stream)
      this.#pulls.delete(stream)
      if (!over && !this.#broken) this.#options.send({ kind: 'close', stream })
    }
  }

  /** Closes a stream of the other side that nobody will read. */
  discard({ stream }: StreamRef): void {
    if (!this.#broken && !this.#theirs.has(stream)) this.#options.send({ kind: 'close', stream })
  }

  /** Ends a stream that this side offered, however much of it was read. */
  withdraw({ stream }: StreamRef): void {
    this.#closed(stream)
  }

  ping(): void {
    this.#options.send({ kind: 'ping' })
  }

  /** Takes a message of the other side; throws `BadMessage` when it violates the protocol. */
  receive(message: LinkMessage): void {
    switch (message.kind) {
      case 'request':
        return this.#requested(message)
      case 'reply':
        return this.#answered(message.id, waiting => {
          try {
            waiting.resolve(this.#options.checked ? this.#options.checked(waiting.op, message.value) : message.value)
          } catch (error) {
            waiting.reject(error as Error)
          }
        })
      case 'refuse':
        return this.#answered(message.id, ({ reject }) => reject(new LinkError(message.failure)))
      case 'pull':
        if (this.#pulling.has(message.stream)) throw new BadMessage('pulled a stream again before its item came')
        return void this.#pulled(message.stream)
      case 'next': {
        const pull = this.#pulls.get(message.stream)
        if (!pull && !this.#theirs.has(message.stream)) return
        if (!pull) throw new BadMessage('sent an item of a stream that was not asked for')
        this.#pulls.delete(message.stream)
        if (message.failure) return pull.reject(new LinkError(message.failure))
        return pull.resolve(
          message.done === true ? { done: true, value: undefined } : { done: false, value: message.value },
        )
      }
      case 'cancel':
        return this.#running.get(message.id)?.abort()
      case 'close':
        return this.#closed(message.stream)
      case 'ping':
        return this.#options.send({ kind: 'pong' })
      case 'pong':
        return this.onPong()
    }
  }

  /** Fails what waits, and aborts what runs: the other side has gone. */
  break(error: Error): void {
    if (this.#broken) return
    this.#broken = error
    for (const { reject } of this.#waiting.values()) reject(error)
    for (const { reject } of this.#pulls.values()) reject(error)
    for (const running of this.#running.values()) running.abort(error)
    for (const stream of [...this.#offered.keys()]) this.#closed(stream)
  }

  #requested({ id, op, input }: { id: number; op: string; input: unknown }): void {
    if (this.#running.has(id)) throw new BadMessage(`used the number ${id} of a request twice`)
    if (this.#running.size >= MOST_IN_FLIGHT) throw new BadMessage(`has more than ${MOST_IN_FLIGHT} requests in flight`)
    const abort = new AbortController()
    this.#running.set(id, abort)
    void this.#options
      .answer(op, input, abort.signal)
      .then(
        value => this.#reply(id, { kind: 'reply', id, value }),
        error => this.#reply(id, { kind: 'refuse', id, failure: this.#options.failure(error) }),
      )
      .finally(() => this.#running.delete(id))
  }

  #reply(id: number, message: LinkMessage): void {
    if (this.#broken) return
    try {
      this.#options.send(message)
    } catch (error) {
      // An answer that is too large, or no JSON, is a failure of its request alone.
      this.#options.send({ kind: 'refuse', id, failure: this.#options.failure(error) })
    }
  }

  #answered(id: number, settle: (waiting: Waiting) => void): void {
    const waiting = this.#waiting.get(id)
    if (!waiting && this.#cancelled.delete(id)) return
    if (!waiting) throw new BadMessage(`answered ${id}, which was not asked`)
    this.#waiting.delete(id)
    settle(waiting)
  }

  async #pulled(stream: number): Promise<void> {
    const items = this.#offered.get(stream)
    if (!items) return this.#sent({ kind: 'next', stream, done: true })
    this.#pulling.add(stream)
    try {
      const { value, done } = await items.next()
      if (done) this.#offered.delete(stream)
      this.#sent(done ? { kind: 'next', stream, done: true } : { kind: 'next', stream, value })
    } catch (error) {
      this.#offered.delete(stream)
      this.#sent({ kind: 'next', stream, failure: this.#options.failure(error) })
    } finally {
      this.#pulling.delete(stream)
    }
  }

  #sent(message: LinkMessage): void {
    if (!this.#broken) this.#options.send(message)
  }

  #closed(stream: number): void {
    const items = this.#offered.get(stream)
    this.#offered.delete(stream)
    void Promise.resolve(items?.return?.()).catch(ignored('what it was asked for is not wanted any more'))
  }
}
