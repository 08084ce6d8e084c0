import type { LinkMessage } from './protocol.js'

/** Stands in the JSON for the binary part of this number. */
const PART = '\u0001part'
const NEWLINE = 10
const CHUNK = 64 * 1024

/** Bytes from a pipe that are not a message, or too many; the text is the end of a sentence. */
export class BadMessage extends Error {}

/** A message as bytes: one line of JSON, which counts its binary parts, and these parts. */
export const encodeMessage = (message: LinkMessage, most: number): Buffer => {
  const parts: Uint8Array[] = []
  const json = JSON.stringify(message, function (this: { [key: string]: unknown }, key: string, value: unknown) {
    // A Buffer has already been turned into a list by its own toJSON.
    const own = this[key]
    if (!(own instanceof Uint8Array)) return value
    parts.push(own)
    return { [PART]: parts.length - 1 }
  })
  const line = parts.length === 0 ? `${json}\n` : `${JSON.stringify(parts.map(part => part.length))} ${json}\n`
  const bytes = parts.length === 0 ? Buffer.from(line) : Buffer.concat([Buffer.from(line), ...parts])
  if (bytes.length > most) throw new BadMessage(`is larger than ${most} bytes`)
  return bytes
}

/** Puts messages together from the pieces of a pipe; keeps at most one message. */
export class MessageDecoder {
  readonly #most: number
  #pieces: Buffer[] = []
  #held = 0
  /** Bytes at the beginning that are known to have no end of a line. */
  #searched = 0
  #lengths: readonly number[] = []
  #json: string | undefined
  #missing = 0

  constructor(most: number) {
    this.#most = most
  }

  /** The messages that these bytes complete, as unchecked values. */
  *push(bytes: Buffer): Generator<unknown, void> {
    // In pieces, so that a small message does not keep a large buffer.
    for (let at = 0; at < bytes.length; at += CHUNK) {
      const piece = bytes.subarray(at, at + CHUNK)
      this.#pieces.push(piece)
      this.#held += piece.length
      for (;;) {
        const value = this.#take()
        if (value === undefined) break
        yield value.message
      }
      if (this.#held > this.#most + CHUNK) throw new BadMessage(`wrote a message of more than ${this.#most} bytes`)
    }
  }

  #take(): { message: unknown } | undefined {
    if (this.#json === undefined && !this.#takeLine()) return undefined
    if (this.#held < this.#missing) return undefined
    const parts = this.#lengths.map(length => this.#cut(length))
    const message = parsed(this.#json!)
    this.#json = undefined
    this.#missing = 0
    return { message: parts.length > 0 ? withParts(message, parts) : message }
  }

  #takeLine(): boolean {
    let before = 0
    for (const piece of this.#pieces) {
      const from = Math.max(0, this.#searched - before)
      const end = from < piece.length ? piece.indexOf(NEWLINE, from) : -1
      if (end >= 0) {
        const line = this.#cut(before + end + 1).toString('utf8', 0, before + end)
        this.#searched = 0
        this.#begin(line)
        return true
      }
      before += piece.length
    }
    this.#searched = before
    return false
  }

  #begin(line: string): void {
    const [, lengths] = /^(\[[0-9,]{1,10000}\]) /.exec(line) ?? []
    this.#json = lengths === undefined ? line : line.slice(lengths.length + 1)
    this.#lengths = lengths === undefined ? [] : (JSON.parse(lengths) as number[])
    this.#missing = this.#lengths.reduce((sum, length) => sum + length, 0)
    if (this.#missing + line.length > this.#most)
      throw new BadMessage(`wrote a message of more than ${this.#most} bytes`)
  }

  /** Takes bytes from the beginning. */
  #cut(length: number): Buffer {
    const taken: Buffer[] = []
    let missing = length
    while (missing > 0) {
      const piece = this.#pieces[0]!
      if (piece.length <= missing) this.#pieces.shift()
      else this.#pieces[0] = piece.subarray(missing)
      taken.push(piece.subarray(0, missing))
      missing -= Math.min(piece.length, missing)
    }
    this.#held -= length
    return Buffer.concat(taken)
  }
}

const parsed = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    throw new BadMessage('wrote a line that is not JSON')
  }
}

const withParts = (value: unknown, parts: readonly Uint8Array[], depth = 0): unknown => {
  if (typeof value !== 'object' || value === null) return value
  if (depth > 64) throw new BadMessage('wrote a message with bytes that is nested deeper than 64 levels')
  if (Array.isArray(value)) return value.map(item => withParts(item, parts, depth + 1))
  const number = (value as { [PART]?: unknown })[PART]
  if (typeof number === 'number' && parts[number]) return parts[number]
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withParts(item, parts, depth + 1)]))
}
