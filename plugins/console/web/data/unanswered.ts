const newMessageId = (): string =>
  `m-${[...crypto.getRandomValues(new Uint32Array(4))].map(one => one.toString(36)).join('')}`

/** The id of an unanswered message: sending the same text again with it has no further effect. */
export class UnansweredMessage {
  #words = ''
  #id: string | undefined

  /** The message id for a text. */
  idFor(words: string): string {
    if (this.#id === undefined || this.#words !== words) this.#id = newMessageId()
    this.#words = words
    return this.#id
  }

  /** Called after an answer: the same text is now a new message. */
  settle(): void {
    this.#id = undefined
  }
}
