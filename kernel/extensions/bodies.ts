import type { IncomingMessage } from 'node:http'
import { refuse } from '../../sdk/refusal.js'

/** The largest body in bytes. */
const MOST = 100 * 1024 * 1024

/** The bodies of requests that are being answered, for the call that answers to read. */
export class RequestBodies {
  readonly #open = new Map<number, IncomingMessage>()
  #next = 0

  /** Keeps a request's body under a number; undefined: it has none. */
  open(req: IncomingMessage): number | undefined {
    const { 'content-length': length, 'transfer-encoding': coding } = req.headers
    if (coding === undefined && (length === undefined || Number(length) === 0)) return undefined
    if (Number(length ?? 0) > MOST) return refuse('too-large', `the body is larger than the limit of ${MOST} bytes`)
    this.#open.set(++this.#next, req)
    return this.#next
  }

  close(body: number | undefined): void {
    if (body !== undefined) this.#open.delete(body)
  }

  /** The pieces of a body, once. */
  async *read(body: number): AsyncGenerator<{ bytes: Uint8Array }, void> {
    const req = this.#open.get(body) ?? refuse('not-found', 'no request with this body is being answered')
    this.#open.delete(body)
    let size = 0
    for await (const bytes of req as AsyncIterable<Buffer>) {
      size += bytes.length
      if (size > MOST) refuse('too-large', `the body is larger than the limit of ${MOST} bytes`)
      yield { bytes }
    }
  }
}
