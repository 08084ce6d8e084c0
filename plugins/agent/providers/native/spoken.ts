import type { Frame } from '../../turn/frames/frames.js'

/** A text that arrives in pieces, and again from its beginning after an interruption. */
class Retold {
  #past: string
  #seen = ''
  /** What of the past has been seen again. */
  #at = 0
  #again: boolean

  constructor(past: string) {
    this.#past = past
    this.#again = past !== ''
  }

  /** The new part of a piece, and whether the text differs from the interrupted one. */
  tell(piece: string): { readonly fresh: string; readonly other?: true } {
    this.#seen += piece
    if (!this.#again) return { fresh: piece }
    const left = this.#past.length - this.#at
    // Only the piece is compared: what came before it is known to be alike.
    if (this.#past.startsWith(piece.slice(0, left), this.#at)) {
      this.#at = Math.min(this.#past.length, this.#seen.length)
      if (piece.length > left) this.#again = false
      return { fresh: piece.slice(left) }
    }
    this.#again = false
    return { fresh: this.#seen, other: true }
  }

  /** The end of the text: returns what was held back because the interrupted text began alike. */
  end(): string {
    if (!this.#again || this.#seen === this.#past) return ''
    this.#again = false
    return this.#seen
  }

  /** Whether it is still repeating the interrupted text. */
  get behind(): boolean {
    return this.#again && this.#seen.length < this.#past.length
  }

  /** Called when the text was interrupted and will be repeated. */
  restart(): void {
    // An interruption before the end of the previous text does not replace that text.
    if (!this.#again) this.#past = this.#seen
    this.#again = this.#past !== ''
    this.#at = 0
    this.#seen = ''
  }
}

/** The frames of one answer; an answer that repeats an interrupted one continues where that ended. */
export class Spoken {
  readonly #text: Retold
  readonly #thoughts: Retold
  #open: boolean

  /** `open`: the last block of prose in the log has not ended. */
  constructor({ text, thoughts, open }: { readonly text: string; readonly thoughts: string; readonly open: boolean }) {
    this.#text = new Retold(text)
    this.#thoughts = new Retold(thoughts)
    this.#open = open
  }

  *say(piece: string): Generator<Frame> {
    const { fresh, other } = this.#text.tell(piece)
    if (other) yield* this.close()
    if (!fresh) return
    this.#open = true
    yield { kind: 'delta', text: fresh }
  }

  *think(piece: string): Generator<Frame> {
    if (!this.#text.behind) yield* this.close()
    const { fresh } = this.#thoughts.tell(piece)
    if (fresh) yield { kind: 'thinking', text: fresh }
  }

  /** The answer is over. */
  *end(): Generator<Frame> {
    yield* this.tail()
    yield* this.close()
  }

  /** The answer is over, and its text goes on in another one. */
  *tail(): Generator<Frame> {
    const held = this.#text.end()
    if (held) {
      yield* this.close()
      this.#open = true
      yield { kind: 'delta', text: held }
    }
  }

  /** Ends the block of prose that is open. */
  *close(): Generator<Frame> {
    if (!this.#open) return
    this.#open = false
    yield { kind: 'text_end' }
  }

  /** Called when the answer was interrupted and is requested again. */
  restart(): void {
    this.#text.restart()
    this.#thoughts.restart()
  }
}

/** The part of an answer in the log that a restart interrupted. */
export const spokenIn = (since: readonly Frame[]): Spoken => {
  let [text, thoughts, open] = ['', '', false]
  for (const frame of since) {
    if ('parentToolUseId' in frame && frame.parentToolUseId !== undefined) continue
    if (frame.kind === 'delta') [text, open] = [text + frame.text, true]
    else if (frame.kind === 'text_end') open = false
    else if (frame.kind === 'thinking') thoughts += frame.text
  }
  return new Spoken({ text, thoughts, open })
}
