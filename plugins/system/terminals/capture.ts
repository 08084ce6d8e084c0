import { StringDecoder } from 'node:string_decoder'
import { setTimeout as delay } from 'node:timers/promises'
import { RotatingFile } from '../../../sdk/node/logs/rotating-file.js'
import { redactedPieces, visible } from '../../../sdk/node/access/redact.js'
import type { TerminalSize } from './backend.js'
import { PlainText } from './plain-text.js'

const LINE_END = 0x0a
/** The most bytes that wait to be logged, and how many of them are kept when there are more. */
const MOST_WAITING = 2 << 20
const KEPT_BYTES = 1 << 20
const PIECE = 16 << 10
/**
 * The largest share of the daemon's time that this may take, so that a program that floods its terminal does not slow
 * it down.
 */
const SHARE = 1 / 6
const MOST_LINE = 16 << 10
const CUT = '… (cut)'

/** Opens the log of a terminal. */
export type OpenCapture = (name: string, size: TerminalSize) => Promise<Capture>

/**
 * The log of one terminal: what it shows, as lines without credentials.
 *
 * It accepts output immediately. If output comes faster than it can be written, the oldest is dropped and a line says
 * how much.
 */
export class Capture {
  readonly #file: RotatingFile
  readonly #text: PlainText
  #decoder = new StringDecoder('utf8')
  readonly #waiting: Buffer[] = []
  #bytes = 0
  /** How many lines were dropped before the waiting ones; undefined: none. */
  #lost: number | undefined
  /** The unfinished line was dropped. */
  #amid = false
  #full: boolean | undefined
  #writing: Promise<void> | undefined
  #ended: Promise<void> | undefined

  private constructor(file: RotatingFile, text: PlainText) {
    this.#file = file
    this.#text = text
  }

  /**
   * @param path The log file; an existing one is continued.
   */
  static async open(path: string, size: TerminalSize): Promise<Capture> {
    const file = new RotatingFile(path, { lost: (lines, why) => note(`${lines} lines of this log were lost: ${why}`) })
    const safe = redactedPieces()
    const text = await PlainText.open(size, {
      lines: lines => {
        const kept = safe(lines.map(shortened))
        if (kept.length) file.write(visible(`${kept.join('\n')}\n`))
      },
    })
    return new Capture(file, text)
  }

  /** Accepts terminal output; returns immediately and never fails. */
  write(bytes: Buffer): void {
    if (this.#ended) return
    const from = this.#amid ? bytes.indexOf(LINE_END) + 1 || bytes.length : 0
    if (this.#amid) this.#leave(bytes.subarray(0, from))
    this.#waiting.push(bytes.subarray(from))
    this.#bytes += bytes.length - from
    if (this.#bytes > MOST_WAITING) this.#drop()
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined))
  }

  resize(size: TerminalSize): void {
    if (!this.#ended) this.#text.resize(size)
  }

  /** Adds a line about the terminal itself. */
  note(words: string): void {
    this.#file.write(note(words))
  }

  /** Writes what is waiting, the unfinished line, and a last line about the terminal. */
  end(words: string): Promise<void> {
    return (this.#ended ??= (async () => {
      await this.#writing
      this.#text.end()
      this.note(words)
      await this.#file.close()
    })())
  }

  /** Drops whole lines: half a line could hold half a credential, which would not be recognized. */
  #drop(): void {
    do {
      const first = this.#waiting.shift()!
      const end = this.#bytes - first.length > KEPT_BYTES ? first.length : first.indexOf(LINE_END) + 1 || first.length
      this.#bytes -= end
      this.#leave(first.subarray(0, end))
      if (end < first.length) this.#waiting.unshift(first.subarray(end))
    } while (this.#waiting.length && (this.#bytes > KEPT_BYTES || this.#amid))
  }

  #leave(gone: Buffer): void {
    this.#lost = (this.#lost ?? 0) + countOf(gone)
    this.#full = fullAfter(gone) ?? this.#full
    this.#amid = gone.at(-1) !== LINE_END
  }

  async #write(): Promise<void> {
    await Promise.resolve()
    while (this.#waiting.length) {
      const began = performance.now()
      // More may be dropped meanwhile.
      while (this.#lost !== undefined) await this.#skip()
      const piece = this.#take()
      await this.#text.write(this.#decoder.write(piece))
      const spent = performance.now() - began
      if (!this.#ended) await delay(spent / SHARE - spent)
    }
  }

  async #skip(): Promise<void> {
    const [lost = 0, full] = [this.#lost, this.#full ?? this.#text.full]
    this.#lost = undefined
    this.#full = undefined
    this.#decoder = new StringDecoder('utf8')
    this.note(`${lost} lines skipped: they came faster than they could be written`)
    await this.#text.reset(full)
  }

  #take(): Buffer {
    const parts: Buffer[] = []
    let bytes = 0
    while (this.#waiting.length && bytes < PIECE) {
      const first = this.#waiting.shift()!
      const part = first.subarray(0, PIECE - bytes)
      if (part.length < first.length) this.#waiting.unshift(first.subarray(part.length))
      parts.push(part)
      bytes += part.length
    }
    this.#bytes -= bytes
    return Buffer.concat(parts)
  }
}

const note = (words: string): string => `[${new Date().toISOString()} ${words}]\n`

/** Cuts an overlong line between two words, so that no credential is split and shown in part. */
const shortened = (line: string): string =>
  line.length > MOST_LINE ? `${line.slice(0, MOST_LINE).replace(/\S*$/, '').toWellFormed()}${CUT}` : line

const countOf = (bytes: Buffer): number => {
  let count = 0
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === LINE_END) count += 1
  return count
}

/** Whether these bytes switch full-screen mode on or off; undefined: neither. */
const fullAfter = (bytes: Buffer): boolean | undefined => {
  const [on, off] = [bytes.lastIndexOf('\x1b[?1049h'), bytes.lastIndexOf('\x1b[?1049l')]
  return on === off ? undefined : on > off
}
