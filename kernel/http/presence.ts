import type { ServerResponse } from 'node:http'

/** Reports when the client of a call disconnects. Created on first use, since few calls need it. */
export class PresenceBook {
  readonly #res: ServerResponse
  #ended: AbortController | undefined

  constructor(res: ServerResponse) {
    this.#res = res
  }

  /** Aborted when the client disconnects before its answer is complete. */
  get ended(): AbortController {
    if (this.#ended) return this.#ended
    const ended = new AbortController()
    const check = () => this.#res.writableFinished || ended.abort()
    if (this.#res.closed) check()
    else this.#res.once('close', check)
    return (this.#ended = ended)
  }
}
