/** The longest text that is held back because it may become a token. */
const LONGEST_TOKEN = 64
const LONGEST_LINE = 4_096
const LONGEST_BARE = 256 * 1024

const SPACE = '[ \\t]{0,2}'
const NAME = `([A-Za-z](?:[A-Za-z0-9]|\\\\?_|%5F){0,23}?)${SPACE}(?:\\\\?_|%5F)${SPACE}(\\d{1,9})`
const named = (open: string, close: string): string =>
  `${open}${SPACE}${open}${SPACE}${NAME}${SPACE}${close}(?<last>${SPACE}${close})?`
  + `|${open}${SPACE}${NAME}${SPACE}${close}${SPACE}${close}`
/** A token in brackets, with one missing outside, small letters, spaces, and escaped for Markdown or an address. */
const source = [
  named('\\[', '\\]'),
  named('\\\\\\[', '\\\\\\]').replace('last', 'last1'),
  named('%5B', '%5D').replace('last', 'last2'),
]
const FORM = source.join('|')
const MAY_BECOME = [
  /^\[[ \t]{0,2}(?:\[[ \t]{0,2})?(?:[A-Za-z][\w\\ \t%]{0,40}(?:\][ \t]{0,2})?)?$/,
  /^\\(?:\[(?:\\(?:\[[\w\\ \t%]{0,44}(?:\]\\?)?)?|[\w\\ \t%]{0,44}(?:\]\\?)?)?)?$/,
  /^%(?:5(?:[Bb][\w\\ \t%]{0,50})?)?$/,
]
const IN_ADDRESS = /(?:https?:\/\/|mailto:)[^\s"'<>()\\]*$/i
const BARE = /(?<![\w[])([A-Z][A-Z0-9_]{0,23}?)[_ -](\d{1,9})(?![\w\]])/g

/** A text that reads as a token, in any spelling that is restored. */
export interface TokenPlace {
  readonly start: number
  readonly end: number
  /** As it was given out: `[[KIND_1]]`. */
  readonly token: string
}

const tokenOf = (kind: string, number: string): string =>
  `[[${kind.replace(/\\_|%5F/gi, '_').toUpperCase()}_${Number(number)}]]`

interface Place extends TokenPlace {
  /** One more bracket would belong to it. */
  readonly open: boolean
  readonly percent: boolean
}

const placesIn = (text: string): Place[] => {
  if (!/[[%]/.test(text)) return []
  return Array.from(text.matchAll(new RegExp(FORM, 'gi')), match => {
    const parts = match.slice(1).filter((part, at) => part !== undefined && at >= 0)
    const [kind = '', number = '', last] = parts
    const doubled = /^(?:\[[ \t]*\[|\\\[[ \t]*\\\[|%5B[ \t]*%5B)/i.test(match[0])
    return {
      start: match.index,
      end: match.index + match[0].length,
      token: tokenOf(kind, number),
      open: doubled && last === undefined,
      percent: match[0].startsWith('%'),
    }
  })
}

/** Where a text reads as a token, whether or not it was given out. */
export const tokenPlaces = (text: string): readonly TokenPlace[] => placesIn(text)

/** How a value is written where its token was. */
export type RestoredAs = 'plain' | 'json'

/** Puts values in place of tokens in a text that may arrive in pieces. */
export class TokenRestorer {
  readonly #valueOf: (token: string) => string | undefined
  readonly #as: RestoredAs | undefined
  /** How often each token was restored. */
  readonly restored = new Map<string, number>()
  /** Texts that read as tokens and were never given out. */
  readonly unknown = new Set<string>()
  #held = ''
  /** The end of what was written, which says how the next value is written. */
  #line = ''
  #bare = ''

  /** @param as Left out: as JSON inside a string of JSON, percent-encoded in an address, else as it is. */
  constructor(valueOf: (token: string) => string | undefined, as?: RestoredAs) {
    this.#valueOf = valueOf
    this.#as = as
  }

  /** Adds a piece; returns the text that cannot change any more. */
  push(piece: string): string {
    const text = this.#held + piece
    const until = settledUntil(text)
    this.#held = text.slice(until)
    return this.#written(text.slice(0, until))
  }

  /** Ends the text; returns the rest. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    const written = this.#written(rest)
    this.#line = ''
    return written
  }

  /** A whole text. */
  whole(text: string): string {
    return this.push(text) + this.end()
  }

  /** A JSON text: values stand in its strings, so it stays valid; one that does not parse is restored as text. */
  json(text: string): string {
    if (placesIn(text).length === 0) return text
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      const inner = new TokenRestorer(this.#valueOf, 'json')
      const done = inner.whole(text)
      for (const [token, count] of inner.restored) this.#count(token, count)
      return done
    }
    return JSON.stringify(this.#strings(value))
  }

  /** How many names of given tokens were written without their brackets. */
  get unrestored(): number {
    const names = [...this.#bare.matchAll(BARE)]
    return names.filter(([, kind = '', number = '']) => this.#valueOf(tokenOf(kind, number)) !== undefined).length
  }

  #strings(value: unknown): unknown {
    if (typeof value === 'string') return this.whole(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(each => this.#strings(each))
    return Object.fromEntries(Object.entries(value).map(([key, held]) => [this.whole(key), this.#strings(held)]))
  }

  #count(token: string, more = 1): void {
    this.restored.set(token, (this.restored.get(token) ?? 0) + more)
  }

  #written(text: string): string {
    let out = ''
    let from = 0
    for (const { start, end, token, percent } of placesIn(text)) {
      const value = this.#valueOf(token)
      if (value === undefined) {
        this.unknown.add(token)
        continue
      }
      this.#keep(text.slice(from, start))
      out += text.slice(from, start)
      const written = this.#as === 'plain' ? value : this.#inPlace(value, percent)
      out += written
      this.#line = (this.#line + written).slice(-LONGEST_LINE)
      this.#count(token)
      from = end
    }
    this.#keep(text.slice(from))
    return out + text.slice(from)
  }

  #keep(text: string): void {
    const line = text.lastIndexOf('\n')
    this.#line = (line < 0 ? this.#line + text : text.slice(line + 1)).slice(-LONGEST_LINE)
    if (this.#bare.length < LONGEST_BARE) this.#bare += `${text}\n`
  }

  #inPlace(value: string, percent: boolean): string {
    if (this.#as === 'json') return inJson(value)
    if (percent) return encodeURIComponent(value.toWellFormed())
    if (/[^\w.@~-]/.test(value) && IN_ADDRESS.test(this.#line)) return inAddress(value)
    return /["\\\u0000-\u001f]/.test(value) && isInJson(this.#line) ? inJson(value) : value
  }
}

const inJson = (value: string): string => JSON.stringify(value).slice(1, -1)
const inAddress = (value: string): string => encodeURIComponent(value.toWellFormed()).replaceAll('%40', '@')

/** Whether the end of a line is inside a string of JSON. */
const isInJson = (line: string): boolean => {
  let open = -1
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '\\') at++
    else if (line[at] === '"') open = open < 0 ? at : -1
  }
  return open >= 0 && /(?:^|[:,[{])\s*$/.test(line.slice(0, open))
}

/** The length of the beginning that more text cannot change. */
const settledUntil = (text: string): number => {
  const found = placesIn(text)
  const last = found.at(-1)
  if (last?.open && /^[ \t]{0,2}[\\%5]{0,2}$/.test(text.slice(last.end))) return last.start
  for (let at = Math.max(last?.end ?? 0, text.length - LONGEST_TOKEN); at < text.length; at++) {
    const first = text[at]!
    if ((first === '[' || first === '\\' || first === '%') && MAY_BECOME.some(form => form.test(text.slice(at))))
      return at
  }
  return text.length
}
