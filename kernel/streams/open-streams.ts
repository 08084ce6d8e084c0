import { SHRUNK } from './live.js'
import { Refusal } from '../../sdk/refusal.js'
import type { Caller } from '../../sdk/types.js'

const ENDED = 'the credential of this stream was revoked or has expired: sign in again, or use another token'

const LESS = 'your role or areas were reduced: connect again'

/** The open event streams and sockets. Ends them with their credential, or when the daemon stops. */
export class OpenStreams {
  readonly #open = new Map<AbortController, Caller>()
  readonly #sockets = new Map<AbortController, Caller>()

  /**
   * @param limit Counts a stream of a credential; throws when there are too many. The returned function releases it.
   */
  constructor(readonly limit: (id: string) => () => void) {}

  /** @param counted False: the group limits the number of these streams itself. */
  enter(caller: Caller, controller: AbortController, counted = true): () => void {
    const release = counted ? this.limit(caller.sessionId ?? caller.tokenId ?? caller.actor) : () => {}
    this.#open.set(controller, caller)
    return () => {
      release()
      this.#open.delete(controller)
    }
  }

  /** How many are open now. */
  get counts(): { streams: number; sockets: number } {
    return { streams: this.#open.size, sockets: this.#sockets.size }
  }

  /** Registers a socket; groups limit their number themselves. */
  hold(caller: Caller, controller: AbortController): () => void {
    this.#sockets.set(controller, caller)
    return () => void this.#sockets.delete(controller)
  }

  /** Ends the streams and sockets of a session, a token, or a person whose access was reduced. */
  end({ sessionId, tokenId, email }: { sessionId?: string; tokenId?: string; email?: string }): void {
    for (const [controller, caller] of [...this.#open, ...this.#sockets]) {
      if ((sessionId && caller.sessionId === sessionId) || (tokenId && caller.tokenId === tokenId))
        controller.abort(new Refusal('unauthenticated', ENDED))
      else if (email !== undefined && caller.kind === 'session' && caller.email === email)
        controller.abort(this.#sockets.has(controller) ? new Refusal('forbidden', LESS) : SHRUNK)
    }
  }

  /** Ends all sockets; called before the groups stop, so that no socket reports their stop as an error. */
  endSockets(): void {
    for (const controller of this.#sockets.keys()) controller.abort()
  }

  endAll(): void {
    for (const controller of this.#open.keys()) controller.abort()
  }
}
