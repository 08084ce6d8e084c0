import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { KeySearch } from '../../sdk/node/access/key-forms.js'
import type { Masker } from '../../sdk/node/access/masker.js'
import { hasZeros } from '../../sdk/node/files/side-files.js'

/** A text in UTF-16 of which so many characters are zeros may have no mark at its beginning. */
const LEAST_ZEROS = 1 / 8
/** The bytes at the end of a piece that may be the beginning of a character. */
const CUTS = [0, 1, 2, 3]

/** Looks for secrets in the bytes of a file as they pass: in texts, and in those that stand in other files. */
export class TextScan {
  readonly #asWritten: TextSearch
  readonly #withoutZeros: TextSearch
  #read: ((piece?: Buffer) => string) | undefined

  constructor(masker: Masker) {
    this.#asWritten = new TextSearch(masker)
    this.#withoutZeros = new TextSearch(masker)
  }

  /** Whether a stored value or a key was found. */
  get found(): boolean {
    return this.#asWritten.found || this.#withoutZeros.found
  }

  push(piece: Buffer): void {
    this.#read ??= readerOf(piece)
    if (!this.found) this.#look(this.#read(piece))
  }

  end(): void {
    if (!this.#read || this.found) return
    this.#look(this.#read())
    this.#asWritten.end()
    this.#withoutZeros.end()
  }

  #look(text: string): void {
    this.#asWritten.push(text)
    if (!text.includes('\0')) return
    const bare = text.replaceAll('\0', '')
    if (text.length - bare.length >= text.length * LEAST_ZEROS) this.#withoutZeros.push(bare)
  }
}

/** Looks for secrets in a text that comes in pieces. */
class TextSearch {
  readonly #masker: Masker
  readonly #keys = new KeySearch()
  #held = ''
  found = false

  constructor(masker: Masker) {
    this.#masker = masker
  }

  push(text: string): void {
    if (this.found) return
    this.found = this.#keys.push(text)
    const joined = this.#held + text
    const { length, masked } = this.#masker.settled(joined)
    this.found ||= masked !== joined.slice(0, length)
    this.#held = joined.slice(length)
  }

  end(): void {
    this.found ||= this.#keys.end() || this.#masker.mask(this.#held) !== this.#held
  }
}

/** Reads the pieces of a file as text, by its first bytes; a file that is none as one character for each byte. */
const readerOf = (first: Buffer): ((piece?: Buffer) => string) => {
  const coding = codingOf(first)
  if (coding === undefined) return piece => piece?.toString('latin1') ?? ''
  const decoder = new TextDecoder(coding)
  return piece => (piece ? decoder.decode(piece, { stream: true }) : decoder.decode())
}

/** How a text is encoded, by its first bytes; undefined: it is none. */
const codingOf = (piece: Buffer): string | undefined => {
  if (piece[0] === 0xff && piece[1] === 0xfe) return 'utf-16le'
  if (piece[0] === 0xfe && piece[1] === 0xff) return 'utf-16be'
  const isText = !hasZeros(piece) || CUTS.some(cut => isUtf8(piece.subarray(0, -cut || undefined)))
  return isText ? 'utf-8' : undefined
}
