const MOST_STEPS = 2000

/** The steps of some work as a stream, which may be left without stopping the work. */
export class WorkSteps<Line, Done> {
  readonly #lines: Line[] = []
  #wake: (() => void) | undefined
  #outcome: { done: Done } | { error: unknown } | undefined

  readonly put = (line: Line): void => {
    if (this.#outcome || this.#lines.length >= MOST_STEPS) return
    this.#lines.push(line)
    this.#wake?.()
  }

  /** Ends them with a last step, and what the work came to. */
  finish(last: Line, done: Done): void {
    if (this.#outcome) return
    this.#lines.push(last)
    this.#outcome = { done }
    this.#wake?.()
  }

  fail(error: unknown): void {
    if (this.#outcome) return
    this.#outcome = { error }
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Line, Done> {
    for (let next = 0; ;) {
      while (next < this.#lines.length) yield this.#lines[next++]!
      if (!this.#outcome) await new Promise<void>(resolve => (this.#wake = resolve))
      else if ('done' in this.#outcome) return this.#outcome.done
      else throw this.#outcome.error
    }
  }
}
