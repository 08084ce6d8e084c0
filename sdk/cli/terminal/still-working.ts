import { stylesOf } from './text.js'

const SILENCE = 3000
const EACH = 1000
const DRAW_OVER = '\r\u001b[K'
/** The style sequences that this program writes; they have no width. */
const STYLE = /\u001b\[\d{1,2}m/g

/** The terminal that the progress sign is shown at. */
export interface SignOptions {
  readonly out: NodeJS.WritableStream
  readonly columns: number
  readonly colour: boolean
}

/**
 * Shows progress at a terminal: after 3 s without output it prints "still working, 3 s" behind the last line, updates
 * it every second, and removes it before the next output.
 */
export class StillWorking {
  readonly #options: SignOptions
  #timer: NodeJS.Timeout | undefined
  /** The number of works in progress; they may be nested. */
  #works = 0
  #paused = false
  /** The last line of the terminal, without the sign. */
  #line = ''
  /** The sign that is shown now. */
  #shown: string | undefined
  #since = 0

  constructor(options: SignOptions) {
    this.#options = options
  }

  /** Shows the sign while the work lasts and nothing is written. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    if (this.#works++ === 0) {
      this.#paused = false
      this.#since = Date.now()
      this.#timer = setInterval(() => this.#tick(), EACH / 4)
    }
    try {
      return await work()
    } finally {
      if (--this.#works === 0) {
        clearInterval(this.#timer)
        this.#hide()
      }
    }
  }

  /** Prepends to output what erases the sign. */
  before(text: string): string {
    const begins = this.#shown ? DRAW_OVER + this.#line : ''
    this.#shown = undefined
    this.#since = Date.now()
    this.#line = (this.#line + text).split('\n').at(-1)!.split(DRAW_OVER).at(-1)!
    return begins + text
  }

  /** Hides the sign until `resume`, while a person is asked. */
  pause(): void {
    this.#hide()
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#since = Date.now()
  }

  #hide(): void {
    if (this.#shown) this.#options.out.write(DRAW_OVER + this.#line)
    this.#shown = undefined
  }

  #tick(): void {
    const silent = Date.now() - this.#since
    if (this.#paused || silent < SILENCE) return
    const { out, columns, colour } = this.#options
    const words = `still working, ${Math.floor(silent / 1000)} s`
    if (words === this.#shown) return
    const used = this.#line.replace(STYLE, '')
    const gap = used ? '  ' : ''
    // Not behind a line that fills the terminal or whose width is not known: the sign would wrap into the next line.
    if (
      used.length + gap.length + words.length >= columns
      || /[^\u0020-\u02ff\u2500-\u25ff\u2026\u2713\u2717]/.test(used)
    )
      return
    out.write(`${DRAW_OVER}${this.#line}${gap}${stylesOf(colour).dim(words)}`)
    this.#shown = words
  }
}
