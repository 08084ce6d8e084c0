import { ignored } from './ignored.js'
/**
 * One server-sent event (HTML standard, section 9.2). `id` is the last id of the stream so far, empty if there was
 * none.
 */
export interface ServerEvent {
  readonly event: string
  readonly data: string
  readonly id: string
}

export interface EventsOptions {
  /** The longest event in characters; default: 4,194,304. */
  readonly most?: number
  /** Called with each `retry:`, in milliseconds. */
  readonly onRetry?: (ms: number) => void
  /** Milliseconds without a byte after which the stream counts as cut. */
  readonly silence?: number
}

const MOST = 4 * 1024 * 1024
const LINE_END = /\r\n?|\n/g

/** An event is longer than the limit. A retry would fail the same way. */
export class TooLong extends Error {
  constructor(most: number) {
    super(`expected an event of at most ${most} characters`)
    this.name = 'TooLong'
  }
}

/** Parses bytes into events as they arrive, in linear time; buffers at most one event. */
export class EventParser {
  readonly #decoder = new TextDecoder()
  readonly #most: number
  readonly #onRetry: (ms: number) => void
  #line: string[] = []
  #held = 0
  #afterReturn = false
  #event = ''
  #data: string[] = []
  #id = ''

  constructor({ most = MOST, onRetry = () => {} }: EventsOptions = {}) {
    this.#most = most
    this.#onRetry = onRetry
  }

  /** Yields the events that these bytes complete. Buffers an incomplete event for the next bytes. */
  *push(bytes: Uint8Array): Generator<ServerEvent, void> {
    const text = this.#decoder.decode(bytes, { stream: true })
    if (!text) return
    const from = this.#afterReturn && text.startsWith('\n') ? 1 : 0
    this.#afterReturn = text.endsWith('\r')
    const rest = text.slice(from)
    let start = 0
    for (const end of rest.matchAll(LINE_END)) {
      this.#hold(rest.slice(start, end.index))
      start = end.index + end[0].length
      const line = this.#line.length === 1 ? this.#line[0]! : this.#line.join('')
      this.#line = []
      const event = line === '' ? this.#dispatch() : this.#field(line)
      if (event) yield event
    }
    this.#hold(rest.slice(start))
  }

  #hold(piece: string): void {
    if (piece) this.#line.push(piece)
    this.#held += piece.length
    if (this.#held > this.#most) throw new TooLong(this.#most)
  }

  #field(line: string): undefined {
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name !== 'data') this.#held -= line.length
    if (name === 'data') this.#data.push(value)
    if (name === 'event') this.#event = value
    if (name === 'id' && !value.includes('\0')) this.#id = value
    if (name === 'retry' && /^[0-9]+$/.test(value)) this.#onRetry(Number(value))
  }

  #dispatch(): ServerEvent | undefined {
    const event = this.#data.length
      ? { event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id }
      : undefined
    this.#event = ''
    this.#data = []
    this.#held = 0
    return event
  }
}

/**
 * Reads the events of a response body, only as fast as the caller consumes them.
 *
 * Ends with the body. The caller decides from the last event whether the stream was complete.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  options: EventsOptions = {},
): AsyncGenerator<ServerEvent, void> {
  const parser = new EventParser(options)
  const reader = body.getReader()
  try {
    while (true) {
      const { done, value } = await within(options.silence, reader.read())
      if (done) return
      yield* parser.push(value)
    }
  } finally {
    await reader.cancel().catch(ignored('the stream has ended already'))
  }
}

const within = async <T>(ms: number | undefined, wait: Promise<T>): Promise<T> => {
  if (ms === undefined) return wait
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Error(`no data for ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([wait, silence])
  } finally {
    clearTimeout(timer)
  }
}
