import type { IMarker, Terminal } from '@xterm/headless'
import type { TerminalSize } from './backend.js'

/** Rows of the scrollback: more than the last piece of a text can fill. */
const BEHIND = 400
const PIECE_ROWS = 100
const PIECE_LINES = 1_000
/** The most rows of one line; the rest is left out. */
const LONGEST = 256
const RESET = '\x1bc'
const FULL_SCREEN = '\x1b[?1049h'

/** Callbacks for a terminal's text. */
export interface ShownText {
  /** Called with complete lines, in order. */
  lines(texts: readonly string[]): void
}

/**
 * Turns the output of a program into the lines that a person reads in the terminal.
 *
 * A line is reported once, when the cursor leaves it. Redrawn lines above the cursor are not reported, nor is the
 * output of full-screen programs.
 */
export class PlainText {
  readonly #terminal: Terminal
  readonly #shown: ShownText
  /** The first row not reported yet; absent: the first row. */
  #next: IMarker | undefined
  /** The visible part of the line at `#next` was reported already. */
  #cut = false
  #found: string[] = []

  private constructor(terminal: Terminal, shown: ShownText) {
    this.#terminal = terminal
    this.#shown = shown
    terminal.onLineFeed(() => this.#tell())
    // Rows that replace erased rows are new.
    terminal.parser.registerCsiHandler({ final: 'J' }, ([what]) => {
      if (what === 0) this.#erased(0)
      else if (what === 2) this.#erased(-terminal.buffer.active.cursorY)
      return false
    })
    terminal.parser.registerEscHandler({ final: 'c' }, () => {
      this.#begin()
      return false
    })
  }

  static async open({ cols, rows }: TerminalSize, shown: ShownText): Promise<PlainText> {
    const {
      default: { Terminal },
    } = await import('@xterm/headless')
    return new PlainText(
      new Terminal({ cols, rows, scrollback: BEHIND, allowProposedApi: true, logLevel: 'off' }),
      shown,
    )
  }

  /** Whether a program fills the screen. */
  get full(): boolean {
    return this.#terminal.buffer.active.type === 'alternate'
  }

  /** Processes text; resolves when its lines are reported. */
  async write(text: string): Promise<void> {
    const most = PIECE_ROWS * this.#terminal.cols
    for (let at = 0; at < text.length;) {
      let end = at
      for (let lines = 0; lines < PIECE_LINES && end < text.length; lines++) {
        const next = text.indexOf('\n', end) + 1 || text.length
        if (next - end > most && end > at) break
        end = Math.min(next, end + most)
      }
      await this.#write(text.slice(at, end))
      this.#tell()
      this.#hand()
      at = end
    }
  }

  /** Drops the unfinished line and all modes. */
  async reset(full: boolean): Promise<void> {
    // Cancels an unfinished control sequence (ECMA-48, CAN).
    await this.#write(`\x18${RESET}${full ? FULL_SCREEN : ''}`)
  }

  resize({ cols, rows }: TerminalSize): void {
    this.#tell()
    this.#terminal.resize(cols, rows)
  }

  /** Reports the unfinished line too. */
  end(): void {
    this.#tell()
    if (!this.#cut && !this.full)
      this.#found.push(...this.#text(this.#first, this.#cursor + 1).filter(line => line !== ''))
    this.#hand()
    this.#terminal.dispose()
  }

  #begin(): void {
    this.#next?.dispose()
    this.#next = undefined
    this.#cut = false
  }

  #hand(): void {
    if (this.#found.length) this.#shown.lines(this.#found.splice(0))
  }

  #write(text: string): Promise<void> {
    return new Promise(resolve => this.#terminal.write(text, resolve))
  }

  get #cursor(): number {
    const { baseY, cursorY } = this.#terminal.buffer.normal
    return baseY + cursorY
  }

  get #first(): number {
    return Math.max(0, this.#next?.line ?? 0)
  }

  #wraps(row: number): boolean {
    return this.#terminal.buffer.normal.getLine(row)?.isWrapped === true
  }

  #tell(): void {
    if (this.full) return
    const cursor = this.#cursor
    let start = cursor
    while (start > 0 && this.#wraps(start)) start--
    let first = this.#first
    if (this.#cut) {
      while (first < cursor && this.#wraps(first)) first++
      this.#cut = this.#wraps(first)
    }
    if (first < start) this.#found.push(...this.#text(first, start))
    if (cursor - start >= LONGEST && !this.#cut) {
      this.#found.push(...this.#text(Math.max(first, start), cursor))
      this.#cut = true
    }
    const next = this.#cut ? cursor : start
    if (next > this.#first) this.#mark(next - cursor)
  }

  /** Marks the rows from here on as empty; offsets count from the cursor. */
  #erased(offset: number): void {
    if (this.full || this.#first <= this.#cursor + offset) return
    this.#cut = false
    this.#mark(offset)
  }

  #mark(offset: number): void {
    this.#next?.dispose()
    this.#next = this.#terminal.registerMarker(offset)
  }

  #text(first: number, end: number): string[] {
    const { normal } = this.#terminal.buffer
    const lines: string[] = []
    let line = ''
    for (let row = first; row < end; row++) {
      const goesOn = row + 1 < end && this.#wraps(row + 1)
      // Rows from before a change of the width may be shorter, so they are not padded.
      line += normal.getLine(row)?.translateToString(true) ?? ''
      if (goesOn) continue
      lines.push(line)
      line = ''
    }
    return lines
  }
}
