import type { Masker } from '../../../sdk/node/access/masker.js'

const FIRST_MS = 500
const LEAST_MS = 1_000
/** A later look comes after this part of the time that passed: a day of output is some two hundred looks. */
const PART = 0.05
const MOST_SHOWN = 4 * 1024
/** Far more than is shown: a stored value that is cut at the beginning of this is not shown. */
const MOST_KEPT = 256 * 1024

/** Shows the end of a command's output while it runs, with values masked; ever more seldom, so that logs stay short. */
export class LiveOutput {
  readonly #masker: Masker
  readonly #show: (text: string) => void
  readonly #began = Date.now()
  #kept = ''
  #written = 0
  #timer: NodeJS.Timeout | undefined
  #looks = 0
  #over = false

  constructor(masker: Masker, show: (text: string) => void) {
    this.#masker = masker
    this.#show = show
  }

  add(piece: string): void {
    if (this.#over) return
    this.#written += piece.length
    this.#kept += piece
    if (this.#kept.length > 2 * MOST_KEPT) this.#kept = this.#kept.slice(-MOST_KEPT)
    const pause = this.#looks === 0 ? FIRST_MS : Math.max(LEAST_MS, (Date.now() - this.#began) * PART)
    this.#timer ??= setTimeout(() => this.#look(), pause).unref()
  }

  /** The command is over: its result shows all. */
  end(): void {
    this.#over = true
    clearTimeout(this.#timer)
  }

  #look(): void {
    this.#timer = undefined
    this.#looks += 1
    // What may be the beginning of a value is held back.
    const text = this.#masker.stream().push(this.#kept)
    if (text === '') return
    const all = this.#written === this.#kept.length && text.length <= MOST_SHOWN
    const end = text.slice(-MOST_SHOWN)
    this.#show(all ? text : `…\n${end.slice(end.indexOf('\n') + 1).toWellFormed()}`)
  }
}
