const newMessageId = (): string =>
  `m-${[...crypto.getRandomValues(new Uint32Array(4))].map(one => one.toString(36)).join('')}`

/** The id of a message whose answer did not come: sent again under it, the same words do nothing twice. */
export class UnansweredMessage {
  #words = ''
  #id: string | undefined

  /** The id under which these words are sent. */
  idFor(words: string): string {
    if (this.#id === undefined || this.#words !== words) this.#id = newMessageId()
    this.#words = words
    return this.#id
  }

  /** The daemon answered: the same words are another message from now on. */
  settle(): void {
    this.#id = undefined
  }
}
