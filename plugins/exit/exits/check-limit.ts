import { refuse } from '../../../sdk/index.js'

const MOST = 10
const MINUTE_MS = 60_000

/** How many checks of each exit a minute has. */
export class CheckLimit {
  readonly #checked = new Map<string, number[]>()

  /** Counts a check. 429: there were enough. */
  count(id: string, now = Date.now()): void {
    const recent = (this.#checked.get(id) ?? []).filter(at => now - at < MINUTE_MS)
    if (recent.length >= MOST)
      refuse('too-many', `${id} was checked ${MOST} times in a minute`, {
        retryAfter: Math.ceil((recent[0]! + MINUTE_MS - now) / 1000),
      })
    this.#checked.set(id, [...recent, now])
  }
}
