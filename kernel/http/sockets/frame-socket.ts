import { Refusal, refuse, type Reason } from '../../../sdk/refusal.js'
import type { Inbox } from '../../../sdk/node/concurrency/inbox.js'
import { parseObject } from '../../../sdk/node/files/json.js'

const SILENCE = 90_000
/** How long the client may take to answer the close frame, in ms. */
const GOODBYE = 500

const DONE = 1000
const LEAVING = 1001
const NO_ACCESS = 1008
const FAILED = 1011
/** Close code for an invalid frame (close codes: RFC 6455, section 7.4.1). */
export const UNFIT = 1007
const CODE: { readonly [reason in Reason]?: number } = {
  invalid: UNFIT,
  unauthenticated: NO_ACCESS,
  forbidden: NO_ACCESS,
}

/** The part of a WebSocket that is used here. */
interface Wire {
  readonly readyState: number
  readonly OPEN: number
  on(event: 'message', listener: (data: unknown, binary: boolean) => void): unknown
  on(event: 'ping' | 'pong' | 'error' | 'close', listener: () => void): unknown
  send(text: string, sent: () => void): void
  pause(): void
  resume(): void
  close(code: number, reason: string): void
  terminate(): void
}

/** The dependencies of an open socket. */
export interface FrameSocketDeps {
  /** Aborted when the socket ends; the reason is a refusal when the client lost its access. */
  readonly ended: AbortController
  /** Validates a frame against the call's contract; refuses an invalid one. */
  readonly fits: (frame: object) => unknown
  readonly failed: (error: unknown) => void
  /** Milliseconds without a frame from the client after which the socket is closed; default: 90,000. */
  readonly silence?: number
}

/** An open WebSocket that exchanges JSON frames as text messages. */
export class FrameSocket {
  readonly #ws: Wire
  readonly #deps: FrameSocketDeps

  constructor(ws: Wire, inbox: Inbox<unknown>, deps: FrameSocketDeps) {
    const { ended, silence = SILENCE } = deps
    this.#ws = ws
    this.#deps = deps
    const silent = setTimeout(
      () => this.#close(LEAVING, `the client sent nothing for ${silence / 1000} s`),
      silence,
    ).unref()
    const refresh = () => void silent.refresh()
    const leave = () =>
      ended.signal.reason instanceof Refusal
        ? this.#refuse(ended.signal.reason)
        : this.#close(LEAVING, 'the sandbox is stopping')
    for (const event of ['ping', 'pong'] as const) ws.on(event, refresh)
    ws.on('error', () => this.#cut())
    ws.on('message', (data, binary) => {
      refresh()
      if (ws.readyState !== ws.OPEN) return
      try {
        inbox.put(deps.fits(frameIn(data, binary)))
      } catch (error) {
        this.#refuse(error)
      }
    })
    ws.on('close', () => {
      clearTimeout(silent)
      ended.signal.removeEventListener('abort', leave)
      inbox.end()
      ended.abort()
    })
    if (ended.signal.aborted) leave()
    else ended.signal.addEventListener('abort', leave, { once: true })
  }

  pause(): void {
    this.#ws.pause()
  }

  resume(): void {
    this.#ws.resume()
  }

  /**
   * Sends each frame after the previous one was written out, so that a client that does not read pauses the producer.
   */
  async send(frames: AsyncIterable<unknown>): Promise<void> {
    try {
      for await (const frame of frames) {
        if (this.#ws.readyState !== this.#ws.OPEN) return
        await new Promise<void>(resolve => this.#ws.send(JSON.stringify(frame), () => resolve()))
      }
      this.#close(DONE, '')
    } catch (error) {
      if (!this.#deps.ended.signal.aborted) this.#refuse(error)
    }
  }

  #refuse(error: unknown): void {
    const refusal = Refusal.from(error)
    if (refusal.reason === 'failed') this.#deps.failed(refusal.cause ?? refusal)
    this.#close(CODE[refusal.reason] ?? FAILED, refusal.message)
  }

  #close(code: number, reason: string): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return
    this.#ws.close(code, short(reason))
    this.#cut()
  }

  #cut(): void {
    setTimeout(() => this.#ws.terminate(), GOODBYE).unref()
  }
}

const frameIn = (data: unknown, binary: boolean): object =>
  binary ? refuse('invalid', 'expected a text frame with JSON, found a binary frame') : parseObject(data as Buffer)

/** A close reason has at most 123 bytes (RFC 6455, section 5.5). */
const short = (text: string): string => {
  const bytes = Buffer.from(text)
  return bytes.length <= 123 ? text : bytes.toString('utf8', 0, 119).replace(/\uFFFD+$/, '') + '…'
}
