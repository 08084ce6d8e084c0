/** Lets work on one name follow the work asked for before it, while other names go on. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  take<T>(name: string, work: () => Promise<T>): Promise<T> {
    const done = (this.#last.get(name) ?? Promise.resolve()).then(work, work)
    this.#last.set(name, done)
    const leave = (): void => {
      if (this.#last.get(name) === done) this.#last.delete(name)
    }
    done.then(leave, leave)
    return done
  }

  /** Resolves when everything asked for so far is done. */
  async done(): Promise<void> {
    await Promise.allSettled(this.#last.values())
  }
}
