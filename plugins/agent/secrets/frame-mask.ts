import type { Masker, MaskedStream } from '../../../sdk/node/access/masker.js'
import type { DeltaFrame, Frame, ThinkingFrame } from '../turn/frames/frames.js'

type Piece = DeltaFrame | ThinkingFrame

interface Open {
  readonly last: Piece
  readonly stream: MaskedStream
}

/** Masks the frames of a run in order; a value may be spread over pieces of prose that follow each other. */
export class FrameMask {
  readonly #masker: () => Masker
  #open: Open | undefined

  constructor(masker: () => Masker) {
    this.#masker = masker
  }

  /** The frames to write for this one: text that may be the beginning of a value is held back. */
  push(frame: Frame): Frame[] {
    const masker = this.#masker()
    if (!this.#open && masker.empty) return [frame]
    if (frame.kind !== 'delta' && frame.kind !== 'thinking') return [...this.end(), masker.maskJson(frame)]
    const before = this.#open
    const goesOn = before?.last.kind === frame.kind && before.last.parentToolUseId === frame.parentToolUseId
    const done = goesOn ? [] : this.end()
    const stream = goesOn ? before.stream : masker.stream()
    this.#open = { last: frame, stream }
    return [...done, ...withText(frame, stream.push(frame.text))]
  }

  /** The text that was held back, at the end. */
  end(): Frame[] {
    const open = this.#open
    this.#open = undefined
    return open ? withText(open.last, open.stream.end()) : []
  }
}

const withText = (frame: Piece, text: string): Frame[] => (text ? [{ ...frame, text }] : [])
