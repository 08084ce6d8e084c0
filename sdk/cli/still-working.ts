import { stylesOf } from './text.js'

const SILENCE = 3000
const EACH = 1000
const DRAW_OVER = '\r\u001b[K'
/** The styles this program itself writes: they take no room. */
const STYLE = /\u001b\[\d{1,2}m/g

/** What a sign of life needs of the terminal it is shown at. */
export interface SignOptions {
  readonly out: NodeJS.WritableStream
  readonly columns: number
  readonly colour: boolean
}

/**
 * Tells somebody at a terminal that a silent program is at work: after 3 s without output "still working, 3 s" stands
 * behind the last line, is rewritten every second, and goes with the next output.
 */
export class StillWorking {
  readonly #options: SignOptions
  #timer: NodeJS.Timeout | undefined
  /** How much work is under way, of which one part may begin within another. */
  #works = 0
  #paused = false
  /** What stands in the last line of the terminal without the sign. */
  #line = ''
  /** The words that stand there now. */
  #shown: string | undefined
  #since = 0

  constructor(options: SignOptions) {
    this.#options = options
  }

  /** Shows the sign whenever nothing is written while the work lasts. */
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

  /** Output as it must be written so that it takes the place of the sign. */
  before(text: string): string {
    const begins = this.#shown ? DRAW_OVER + this.#line : ''
    this.#shown = undefined
    this.#since = Date.now()
    this.#line = (this.#line + text).split('\n').at(-1)!.split(DRAW_OVER).at(-1)!
    return begins + text
  }

  /** Shows nothing until `resume`: a person is asked something. */
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
    // Behind a line that fills the terminal, or whose width is not known, it would be drawn into the next one.
    if (
      used.length + gap.length + words.length >= columns
      || /[^\u0020-\u02ff\u2500-\u25ff\u2026\u2713\u2717]/.test(used)
    )
      return
    out.write(`${DRAW_OVER}${this.#line}${gap}${stylesOf(colour).dim(words)}`)
    this.#shown = words
  }
}
