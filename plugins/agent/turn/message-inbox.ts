import type { UserMessage } from '../providers/adapter.js'

/** Messages sent into a turn, until its adapter takes them. */
export class MessageInbox {
  #words: UserMessage[] = []
  #waiting: (() => void)[] = []

  put(words: UserMessage): void {
    this.#words.push(words)
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }

  /** The messages that were not taken yet. */
  get left(): readonly UserMessage[] {
    return [...this.#words]
  }

  /** Returns messages that an adapter took but did not handle. */
  offerAgain(words: readonly UserMessage[]): void {
    this.#words = [...words, ...this.#words.filter(each => !words.includes(each))]
  }

  /** Drops messages that reach the adapter in another way. */
  drop(messageIds: ReadonlySet<string>): void {
    this.#words = this.#words.filter(({ messageId }) => messageId === undefined || !messageIds.has(messageId))
  }

  /** Takes all messages, oldest first. */
  take(): UserMessage[] {
    return this.#words.splice(0)
  }

  /** The next message, or undefined after `ms` or on abort. */
  async next(signal: AbortSignal, ms?: number): Promise<UserMessage | undefined> {
    if (!this.#words.length && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = ms === undefined ? undefined : setTimeout(resolve, ms)
      const wake = () => resolve()
      this.#waiting.push(wake)
      signal.addEventListener('abort', wake, { once: true })
      await promise
      clearTimeout(timer)
      signal.removeEventListener('abort', wake)
      this.#waiting = this.#waiting.filter(other => other !== wake)
    }
    return signal.aborted ? undefined : this.#words.shift()
  }
}
