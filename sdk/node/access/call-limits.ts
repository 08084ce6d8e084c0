import { secondsUntil } from './failures.js'
import { refuse } from '../../refusal.js'

const MINUTE = 60_000
const KEYS = 10_000
const CALLS = 1200
const AT_ONCE = 64
const STREAMS = 16

interface Use {
  since: number
  calls: number
  open: number
  streams: number
}

/** Limits each credential to 1200 calls a minute, 64 concurrent calls and 16 streams. */
export class CallLimits {
  readonly #now: () => number
  readonly #uses = new Map<string, Use>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Counts a call of a credential. Call the returned function when the call is answered or its stream has begun. */
  enter(id: string): () => void {
    const use = this.#use(id)
    if (use.calls >= CALLS) {
      const retryAfter = secondsUntil(use.since + MINUTE, this.#now())
      const message = `expected at most ${CALLS} calls a minute with one credential; ask again in ${retryAfter} s`
      refuse('too-many', message, { retryAfter })
    }
    if (use.open >= AT_ONCE) {
      const message = `expected at most ${AT_ONCE} calls at once with one credential; ask again when one has ended`
      refuse('too-many', message, { retryAfter: 1 })
    }
    use.calls += 1
    use.open += 1
    return once(() => {
      use.open -= 1
    })
  }

  /** Counts an open stream of a credential. Call the returned function when the stream has ended. */
  enterStream(id: string): () => void {
    const use = this.#use(id)
    if (use.streams >= STREAMS) {
      const message = `expected at most ${STREAMS} streams with one credential; close one first`
      refuse('too-many', message, { retryAfter: 1 })
    }
    use.streams += 1
    return once(() => {
      use.streams -= 1
    })
  }

  #use(id: string): Use {
    const now = this.#now()
    const found = this.#uses.get(id)
    if (found) {
      // A clock that was set back counts as a new minute.
      if (now - found.since >= MINUTE || now < found.since) Object.assign(found, { since: now, calls: 0 })
      return found
    }
    if (this.#uses.size >= KEYS) this.#deleteIdle(now)
    const use: Use = { since: now, calls: 0, open: 0, streams: 0 }
    this.#uses.set(id, use)
    return use
  }

  #deleteIdle(now: number): void {
    for (const [id, use] of this.#uses) {
      if (!use.open && !use.streams && Math.abs(now - use.since) >= MINUTE) this.#uses.delete(id)
    }
  }
}

const once = (work: () => void): (() => void) => {
  let done = false
  return () => {
    if (done) return
    done = true
    work()
  }
}
