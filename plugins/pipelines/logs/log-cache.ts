const KEPT_MS = 24 * 3_600_000
const MOST_CHARACTERS = 16 * 1024 * 1024

/** Logs of finished jobs, as forges gave them: for 24 h, and only as many as fit into memory. */
export class LogCache {
  readonly #logs = new Map<string, { at: number; text: string }>()
  #characters = 0

  get(key: string): string | undefined {
    const found = this.#logs.get(key)
    if (!found) return undefined
    if (found.at > Date.now() - KEPT_MS) return found.text
    this.#drop(key)
    return undefined
  }

  keep(key: string, text: string): void {
    this.#drop(key)
    if (text.length > MOST_CHARACTERS) return
    this.#logs.set(key, { at: Date.now(), text })
    this.#characters += text.length
    for (const oldest of this.#logs.keys()) {
      if (this.#characters <= MOST_CHARACTERS) break
      this.#drop(oldest)
    }
  }

  #drop(key: string): void {
    this.#characters -= this.#logs.get(key)?.text.length ?? 0
    this.#logs.delete(key)
  }
}
