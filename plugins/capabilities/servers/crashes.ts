const WINDOW_MS = 300_000
const MOST = 3

/** How often the process of each server ended by itself lately. */
export class Crashes {
  readonly #at = new Map<string, number[]>()

  /** Counts one; answers whether the server is not started again by itself. */
  add(id: string): boolean {
    this.#at.set(id, [...this.#recent(id), Date.now()])
    return this.paused(id)
  }

  /** Whether it crashed too often; its status, or another config, ends that. */
  paused(id: string): boolean {
    return this.#recent(id).length >= MOST
  }

  clear(id: string): void {
    this.#at.delete(id)
  }

  #recent(id: string): number[] {
    const found = this.#at.get(id) ?? []
    // A pause does not end by waiting.
    return found.length >= MOST ? found : found.filter(at => Date.now() - at < WINDOW_MS)
  }
}

/** The refusal of calls to a server that crashed too often. */
export const pausedSentence = (id: string): string =>
  `the server ${id} ended by itself ${MOST} times in ${WINDOW_MS / 60_000} minutes and is not started again: see why `
  + `with GET /capabilities/${id.split('.', 1)[0]}/status, which starts it anew, or change its config`
