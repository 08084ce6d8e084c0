/** One line that ripgrep found. */
export interface TextMatch {
  readonly path: string
  readonly line: number
  /** The line as text. */
  readonly text: string
  /** In UTF-16 code units; empty if the line is not UTF-8. */
  readonly spans: readonly { readonly start: number; readonly end: number }[]
}

interface RipgrepText {
  readonly text?: string
  readonly bytes?: string
}

interface RipgrepMessage {
  readonly type: string
  readonly data: {
    readonly path: RipgrepText
    readonly lines: RipgrepText
    readonly line_number: number
    readonly submatches: readonly { readonly start: number; readonly end: number }[]
    readonly binary_offset: number | null
  }
}

const NEWLINE = 10
/** A longer line of output is dropped. */
const MOST_LINE = 1 << 20
const MOST_SPANS = 50
/** A NUL before this byte makes a file binary. */
const BINARY = 8192
const MOST_HELD = 60

/** Parses the output of `rg --json`; reports the lines of a file once it is known not to be binary. */
export class MatchReader {
  readonly #found: (match: TextMatch) => void
  #parts: Buffer[] = []
  #size = 0
  #held: TextMatch[] = []
  /** Lines of output that were too long. */
  dropped = 0

  constructor(found: (match: TextMatch) => void) {
    this.#found = found
  }

  add(piece: Buffer): void {
    let from = 0
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      this.#take(piece.subarray(from, end))
      from = end + 1
      if (this.#size > MOST_LINE) this.dropped += 1
      else this.#message(Buffer.concat(this.#parts).toString())
      this.#parts = []
      this.#size = 0
    }
    this.#take(piece.subarray(from))
  }

  #take(part: Buffer): void {
    this.#size += part.length
    if (this.#size > MOST_LINE) this.#parts = []
    else if (part.length > 0) this.#parts.push(part)
  }

  #message(text: string): void {
    if (text === '') return
    const { type, data } = JSON.parse(text) as RipgrepMessage
    if (type === 'match') {
      if (data.path.text === undefined) return
      this.#held.push(matchOf(data))
      // After so many bytes without a NUL the file is not binary.
      if (this.#held.length > MOST_HELD) this.#report()
    } else if (type === 'end') {
      if (data.binary_offset !== null && data.binary_offset < BINARY) this.#held = []
      this.#report()
    }
  }

  #report(): void {
    for (const match of this.#held) this.#found(match)
    this.#held = []
  }
}

const matchOf = ({ path, lines, line_number: line, submatches }: RipgrepMessage['data']): TextMatch => {
  const named = { path: path.text!.replace(/^\.\//, ''), line }
  if (lines.text === undefined)
    return { ...named, text: Buffer.from(lines.bytes ?? '', 'base64').toString(), spans: [] }
  const { text } = lines
  const shown = submatches.slice(0, MOST_SPANS)
  const bytes = Buffer.byteLength(text) === text.length ? undefined : Buffer.from(text)
  const at = (offset: number) => (bytes ? bytes.subarray(0, offset).toString().length : offset)
  return { ...named, text, spans: shown.map(({ start, end }) => ({ start: at(start), end: at(end) })) }
}
