const REST_MS = 50

/** Calls back with the id of each changed conversation: at once, then at a limited rate. */
export class Changes {
  readonly #notify: (id: string) => void
  /** Conversations reported lately, and whether they changed again since. */
  readonly #resting = new Map<string, boolean>()

  constructor(notify: (id: string) => void) {
    this.#notify = notify
  }

  changed(id: string): void {
    if (this.#resting.has(id)) return void this.#resting.set(id, true)
    this.#resting.set(id, false)
    this.#notify(id)
    setTimeout(() => {
      const again = this.#resting.get(id)
      this.#resting.delete(id)
      if (again) this.changed(id)
    }, REST_MS).unref()
  }
}
