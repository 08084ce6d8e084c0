import type { ServerResponse } from 'node:http'

/** Whether the client of a call is still there. Few calls ask, so what tells them is made for those. */
export class PresenceBook {
  readonly #res: ServerResponse
  #ended: AbortController | undefined

  constructor(res: ServerResponse) {
    this.#res = res
  }

  /** Aborted when the client has gone before its answer was whole. */
  get ended(): AbortController {
    if (this.#ended) return this.#ended
    const ended = new AbortController()
    const look = () => this.#res.writableFinished || ended.abort()
    if (this.#res.closed) look()
    else this.#res.once('close', look)
    return (this.#ended = ended)
  }
}
