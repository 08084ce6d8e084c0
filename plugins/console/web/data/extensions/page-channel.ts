import type { ConsoleMessage, PageMessage } from '../../../../../sdk/page.js'
import type { UiEvents } from '../../../../../sdk/ui-host.js'

/** What the page of an extension may ask for, besides what changes how it is shown. */
export interface PageAsks {
  call(entry: string, input: object, signal: AbortSignal): Promise<unknown>
  fetch(path: string, request: { method?: string; body?: unknown }, signal: AbortSignal): Promise<unknown>
  read(from: number, to: number, signal: AbortSignal): Promise<unknown>
}

/** What a page tells the console, and what becomes of it. */
export interface PageReports {
  badge(count: number): void
  resize(height: number): void
  open(place: string): void
  active(): void
  /** The page is of no use any more. */
  ended(sentence: string): void
}

/** The end of a `MessageChannel` that the console keeps. */
export interface ConsolePort {
  postMessage(message: ConsoleMessage): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  start(): void
  close(): void
}

const MOST_MESSAGE = 8 * 1024 * 1024
const MOST_ASKS = 20
const MOST_MESSAGES_A_SECOND = 500
const PING_MS = 2_000
const SILENCE_MS = 10_000

/** Talks with the page of an extension, which may send anything: what breaks the rules ends it. */
export class PageChannel {
  readonly #port: ConsolePort
  readonly #asks: PageAsks
  readonly #reports: PageReports
  readonly #ended = new AbortController()
  readonly #timer: ReturnType<typeof setInterval>
  #running = 0
  #second = 0
  #messages = 0
  #heardAt = Date.now()
  #pingedAt: number | undefined
  #openedAt = 0

  constructor(port: ConsolePort, asks: PageAsks, reports: PageReports, isShown: () => boolean = () => true) {
    this.#port = port
    this.#asks = asks
    this.#reports = reports
    port.addEventListener('message', ({ data }) => this.#receive(data))
    port.start()
    this.#timer = setInterval(() => this.#watch(isShown()), PING_MS)
  }

  /** Sends the page an event that it may subscribe to. */
  tell<K extends keyof UiEvents>(name: K, value: UiEvents[K]): void {
    if (!this.#ended.signal.aborted) this.#port.postMessage({ kind: 'event', name, value })
  }

  /** Ends the conversation with the page, and what it asked for. */
  close(): void {
    clearInterval(this.#timer)
    this.#ended.abort()
    this.#port.close()
  }

  #end(sentence: string): void {
    if (this.#ended.signal.aborted) return
    this.close()
    this.#reports.ended(sentence)
  }

  #watch(shown: boolean): void {
    // A tab in the background runs its timers, and those of its frames, when it likes.
    if (!shown) {
      this.#pingedAt = undefined
      return
    }
    const now = Date.now()
    const waited = this.#pingedAt !== undefined && this.#heardAt < this.#pingedAt ? now - this.#pingedAt : 0
    if (waited >= SILENCE_MS) return this.#end('It did not respond for 10 s.')
    if (waited === 0) {
      this.#pingedAt = now
      this.#port.postMessage({ kind: 'ping' })
    }
  }

  #receive(data: unknown): void {
    if (this.#ended.signal.aborted) return
    const now = Date.now()
    if (now - this.#second >= 1_000) {
      this.#second = now
      this.#messages = 0
    }
    this.#messages += 1
    if (this.#messages > MOST_MESSAGES_A_SECOND) return this.#end('It sent more than 500 messages in a second.')
    if (typeof data !== 'string' || data.length > MOST_MESSAGE)
      return this.#end('It sent a message that is no text of at most 8 MiB.')
    this.#heardAt = Math.max(now, this.#pingedAt ?? 0)
    const message = messageOf(data)
    if (message) this.#take(message, now)
    else this.#end('It sent a message that cannot be read.')
  }

  #take(message: PageMessage, now: number): void {
    const signal = this.#ended.signal
    switch (message.kind) {
      case 'call':
        return this.#answer(message.ask, () => this.#asks.call(message.entry, objectOf(message.input), signal))
      case 'fetch':
        return this.#answer(message.ask, () => this.#asks.fetch(message.path, objectOf(message.request), signal))
      case 'read':
        return this.#answer(message.ask, () => this.#asks.read(message.from, message.to, signal))
      case 'badge':
        return this.#reports.badge(wholeWithin(message.count, 0, 9_999))
      case 'resize':
        return this.#reports.resize(wholeWithin(message.height, 40, 4_000))
      case 'open':
        if (now - this.#openedAt < 1_000 || typeof message.place !== 'string') return
        this.#openedAt = now
        return this.#reports.open(message.place)
      case 'active':
        return this.#reports.active()
      case 'failed':
        return this.#end(`It failed: ${String(message.message).slice(0, 1_000)}`)
      default:
    }
  }

  #answer(ask: number, work: () => Promise<unknown>): void {
    if (typeof ask !== 'number') return
    const send = (message: ConsoleMessage) => this.#ended.signal.aborted || this.#port.postMessage(message)
    const refuse = (error: unknown) => {
      const { message, reason } = error as { message?: unknown; reason?: unknown }
      send({
        ...{ kind: 'refused', ask, message: typeof message === 'string' ? message : 'it failed' },
        ...(typeof reason === 'string' && { reason }),
      })
    }
    if (this.#running >= MOST_ASKS) return refuse(new Error('at most 20 calls at once: wait for an answer'))
    this.#running += 1
    work()
      .then(value => void send({ kind: 'answer', ask, value }))
      .catch(refuse)
      .finally(() => {
        this.#running -= 1
      })
  }
}

const messageOf = (text: string): PageMessage | undefined => {
  try {
    const message = JSON.parse(text) as unknown
    return typeof message === 'object' && message !== null && !Array.isArray(message)
      ? (message as PageMessage)
      : undefined
  } catch {
    return undefined
  }
}

const objectOf = (value: unknown): object =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}

const wholeWithin = (value: unknown, least: number, most: number): number =>
  typeof value === 'number' && Number.isFinite(value) ? Math.min(most, Math.max(least, Math.round(value))) : least
