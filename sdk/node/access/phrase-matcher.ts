/** A text to look for. */
export interface Phrase<Id> {
  readonly text: string
  readonly id: Id
  /** No letter or digit may be beside it. */
  readonly wholeWord?: boolean
  readonly caseSensitive?: boolean
}

/** Where a phrase is in a text. */
export interface PhrasePlace<Id> {
  readonly start: number
  readonly end: number
  readonly id: Id
}

interface Entry<Id> extends Phrase<Id> {
  readonly folded: string
}

const LONGEST_KEY = 4
const LEAST_KEY = 2
const SLOTS = 1 << 16
const WORD = /[\p{L}\p{N}]/u

/** In small letters, without a change of length. */
const folded = (text: string): string => {
  const lower = text.toLowerCase()
  if (lower.length === text.length) return lower
  return text.replace(/[^]/g, unit => (unit.toLowerCase().length === 1 ? unit.toLowerCase() : unit))
}

const slotOf = (text: string, at: number): number =>
  ((text.charCodeAt(at) * 0x9e3d) ^ (text.charCodeAt(at + 1) * 0x3b5)) & (SLOTS - 1)

/** Finds many phrases in a text at once, in time that grows with the text and not with the number of phrases. */
export class PhraseMatcher<Id> {
  /** By their first characters, longest first. */
  readonly #byKey = new Map<string, Entry<Id>[]>()
  #starts: Uint8Array | undefined

  /** Phrases of one character are left out. */
  constructor(phrases: Iterable<Phrase<Id>>) {
    for (const phrase of phrases) {
      if (phrase.text.length < LEAST_KEY) continue
      const entry = { ...phrase, folded: folded(phrase.text) }
      const key = entry.folded.slice(0, LONGEST_KEY)
      const there = this.#byKey.get(key)
      if (there) there.push(entry)
      else this.#byKey.set(key, [entry])
      this.#starts ??= new Uint8Array(SLOTS)
      this.#starts[slotOf(entry.folded, 0)] = 1
    }
    for (const entries of this.#byKey.values()) entries.sort((one, other) => other.text.length - one.text.length)
  }

  /** The longest phrase at each place, in order; places may overlap. */
  places(text: string): PhrasePlace<Id>[] {
    const starts = this.#starts
    if (!starts) return []
    const found: PhrasePlace<Id>[] = []
    const small = folded(text)
    for (let start = 0; start + LEAST_KEY <= small.length; start++) {
      if (!starts[slotOf(small, start)]) continue
      const entry = this.#longest(text, small, start)
      if (entry) found.push({ start, end: start + entry.text.length, id: entry.id })
    }
    return found
  }

  #longest(text: string, small: string, start: number): Entry<Id> | undefined {
    let longest: Entry<Id> | undefined
    for (let length = LONGEST_KEY; length >= LEAST_KEY; length--) {
      const found = this.#byKey.get(small.slice(start, start + length))?.find(entry => fits(entry, text, small, start))
      if (found && (!longest || found.text.length > longest.text.length)) longest = found
    }
    return longest
  }
}

const fits = <Id>(entry: Entry<Id>, text: string, small: string, start: number): boolean => {
  const there = entry.caseSensitive ? text.startsWith(entry.text, start) : small.startsWith(entry.folded, start)
  return there && (!entry.wholeWord || isWhole(text, start, start + entry.text.length))
}

const isWhole = (text: string, start: number, end: number): boolean => {
  const joined = (one: string | undefined, other: string | undefined): boolean =>
    one !== undefined && other !== undefined && WORD.test(one) && WORD.test(other)
  return !joined(text[start - 1], text[start]) && !joined(text[end - 1], text[end])
}
