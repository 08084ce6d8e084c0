import type { VpnLine, VpnLink } from '../contract.js'

const MOST_STEPS = 2000

/** The steps of a dial as a stream, which may be left without stopping the dial. */
export class DialSteps {
  readonly #lines: VpnLine[] = []
  #wake: (() => void) | undefined
  #outcome: { link: VpnLink } | { error: unknown } | undefined

  readonly put = (line: VpnLine): void => {
    if (this.#outcome || this.#lines.length >= MOST_STEPS) return
    this.#lines.push(line)
    this.#wake?.()
  }

  finish(link: VpnLink): void {
    this.#lines.push({ kind: 'result', ok: true, link })
    this.#outcome = { link }
    this.#wake?.()
  }

  fail(error: unknown): void {
    this.#outcome = { error }
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<VpnLine, { link: VpnLink }> {
    for (let next = 0; ;) {
      while (next < this.#lines.length) yield this.#lines[next++]!
      if (!this.#outcome) await new Promise<void>(resolve => (this.#wake = resolve))
      else if ('link' in this.#outcome) return { link: this.#outcome.link }
      else throw this.#outcome.error
    }
  }
}
