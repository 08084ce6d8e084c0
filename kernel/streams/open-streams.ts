import { SHRUNK } from './live.js'
import { Refusal } from '../../sdk/refusal.js'
import type { Caller } from '../../sdk/types.js'

const ENDED = 'the credential of this stream was revoked or has expired: sign in again, or use another token'

const LESS = 'your role or areas were made smaller: connect again for what is left of them'

/**
 * The event streams and sockets that are open, so that they end with the credential they stand on and when the daemon
 * stops.
 */
export class OpenStreams {
  readonly #open = new Map<AbortController, Caller>()
  readonly #sockets = new Map<AbortController, Caller>()

  /** @param limit Throws when a credential has too many open; answers what gives the place back. */
  constructor(readonly limit: (id: string) => () => void) {}

  enter(caller: Caller, controller: AbortController): () => void {
    const release = this.limit(caller.sessionId ?? caller.tokenId ?? caller.actor)
    this.#open.set(controller, caller)
    return () => {
      release()
      this.#open.delete(controller)
    }
  }

  /** Remembers a socket, of which groups count how many there may be. */
  hold(caller: Caller, controller: AbortController): () => void {
    this.#sockets.set(controller, caller)
    return () => void this.#sockets.delete(controller)
  }

  /** Ends every stream and socket of a session or token, or of a person who reaches less than before. */
  end({ sessionId, tokenId, email }: { sessionId?: string; tokenId?: string; email?: string }): void {
    for (const [controller, caller] of [...this.#open, ...this.#sockets]) {
      if ((sessionId && caller.sessionId === sessionId) || (tokenId && caller.tokenId === tokenId))
        controller.abort(new Refusal('unauthenticated', ENDED))
      else if (email !== undefined && caller.kind === 'session' && caller.email === email)
        controller.abort(this.#sockets.has(controller) ? new Refusal('forbidden', LESS) : SHRUNK)
    }
  }

  /** Before the groups are switched off, so that no socket takes their end for a fault. */
  endSockets(): void {
    for (const controller of this.#sockets.keys()) controller.abort()
  }

  endAll(): void {
    for (const controller of this.#open.keys()) controller.abort()
  }
}
