const REST_MS = 50

/** Tells of each conversation that something of it changed: at once, and then at most so often. */
export class Changes {
  readonly #tell: (id: string) => void
  /** Conversations reported lately, and whether they changed again since. */
  readonly #resting = new Map<string, boolean>()

  constructor(tell: (id: string) => void) {
    this.#tell = tell
  }

  changed(id: string): void {
    if (this.#resting.has(id)) return void this.#resting.set(id, true)
    this.#resting.set(id, false)
    this.#tell(id)
    setTimeout(() => {
      const again = this.#resting.get(id)
      this.#resting.delete(id)
      if (again) this.changed(id)
    }, REST_MS).unref()
  }
}
