import { TextDecoder } from 'node:util'
import type { Masker } from '../../sdk/node/access/masker.js'
import { containsKey } from '../../sdk/node/access/redact.js'
import { hasZeros } from '../../sdk/node/files/side-files.js'

/** The longest beginning of a key that pieces are joined for. */
const OVERLAP = 256

/** Looks for secrets in the bytes of a file as they pass; files that are no text contain none. */
export class TextScan {
  readonly #masker: Masker
  #decoder: TextDecoder | undefined
  #begun = false
  #held = ''
  #before = ''
  /** Whether a stored value or a key was found. */
  found = false

  constructor(masker: Masker) {
    this.#masker = masker
  }

  push(piece: Buffer): void {
    if (!this.#begun) {
      this.#begun = true
      const coding = codingOf(piece)
      this.#decoder = coding === undefined ? undefined : new TextDecoder(coding)
    }
    if (this.#decoder) this.#look(this.#decoder.decode(piece, { stream: true }))
  }

  end(): void {
    if (!this.#decoder || this.found) return
    this.#look(this.#decoder.decode())
    this.found ||= this.#masker.mask(this.#held) !== this.#held
  }

  #look(text: string): void {
    if (this.found) return
    this.found = containsKey(this.#before + text)
    this.#before = (this.#before + text).slice(-OVERLAP)
    const joined = this.#held + text
    const { length, masked } = this.#masker.settled(joined)
    this.found ||= masked !== joined.slice(0, length)
    this.#held = joined.slice(length)
  }
}

/** How a text is encoded, by its first bytes; undefined: it is none. */
const codingOf = (piece: Buffer): string | undefined => {
  if (piece[0] === 0xff && piece[1] === 0xfe) return 'utf-16le'
  if (piece[0] === 0xfe && piece[1] === 0xff) return 'utf-16be'
  return hasZeros(piece) ? undefined : 'utf-8'
}
