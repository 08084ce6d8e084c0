import { begunEscape, escapedView, type EscapedView } from './escaped-view.js'
import { formsOf, type Hidden, LEAST_MASKED, referenceTo } from './mask-forms.js'

/** A text to search for, and the name of its value. */
interface Form {
  readonly text: string
  readonly name: string
}
/** A range of a text that contains values, and their names in order. */
interface Shown {
  readonly start: number
  end: number
  readonly names: string[]
}

/** Characters that are compared as one block. */
const BLOCK = 3
const SLOTS = 1 << 16

const slotOf = (text: string, at: number): number =>
  ((text.charCodeAt(at) * 0x9e3d) ^ (text.charCodeAt(at + 1) * 0x3b5) ^ (text.charCodeAt(at + 2) * 0x1f)) & (SLOTS - 1)

/**
 * Replaces stored values, raw or encoded, by their references in a text.
 *
 * Uses the Wu-Manber algorithm: compares the last block of a window as long as the shortest form, and shifts by the
 * characters in which no form can begin. Overlapping values are replaced together.
 */
export class Masker {
  /** How far to shift a window that ends with this block; 0: a form may begin at the window's start. */
  readonly #shift = new Uint8Array(SLOTS)
  /** The forms by the last block of their window, longest first. */
  readonly #byEnd = new Map<number, Form[]>()
  /** The forms by their first block, longest first. */
  readonly #byStart = new Map<number, Form[]>()
  /** Prefixes of forms, shorter than a block. */
  readonly #short = new Set<string>()
  readonly #starts = new Uint8Array(SLOTS)
  readonly #window: number
  readonly #longest: number
  readonly empty: boolean

  constructor(values: readonly Hidden[]) {
    const names = new Map<string, string>()
    for (const { name, value } of values) {
      if (value.length < LEAST_MASKED) continue
      // If two values have the same form, the first name is used.
      for (const form of formsOf(value)) if (!names.has(form)) names.set(form, name)
    }
    const forms = [...names].map(([text, name]) => ({ text, name })).sort((a, b) => b.text.length - a.text.length)
    this.empty = forms.length === 0
    this.#longest = forms[0]?.text.length ?? 0
    this.#window = Math.min(forms.at(-1)?.text.length ?? BLOCK, 255)
    this.#shift.fill(this.#window - BLOCK + 1)
    for (const form of forms) this.#add(form)
  }

  /** Replaces every value in a text. */
  mask(text: string): string {
    if (text.length < this.#window || this.empty) return text
    return replaced(text, this.#found(text), text.length)
  }

  /** Masks all strings and keys of a JSON value; returns the same object if nothing was found. */
  maskJson<T>(value: T): T {
    return this.empty ? value : (this.#json(value) as T)
  }

  /** Masks a text that arrives in pieces; the results of `push` and `end` together are the masked text. */
  stream(): MaskedStream {
    return new MaskedStream(this)
  }

  /** The length of the prefix that cannot change with further text, and that prefix masked. */
  settled(text: string): { length: number; masked: string } {
    const found = this.empty ? [] : this.#found(text)
    let length = this.empty ? text.length : this.#beginsAt(text)
    for (const { start, end } of found.toReversed()) if (end > length) length = Math.min(length, start)
    return { length, masked: replaced(text, found, length) }
  }

  #json(value: unknown): unknown {
    if (typeof value === 'string') return this.mask(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) {
      let copy: unknown[] | undefined
      for (let at = 0; at < value.length; at++) {
        const masked = this.#json(value[at])
        if (masked !== value[at]) (copy ??= [...(value as unknown[])])[at] = masked
      }
      return copy ?? value
    }
    const entries = Object.entries(value)
    let changed = false
    for (const entry of entries) {
      const [name, held] = entry
      const masked = this.#json(held)
      const named = this.mask(name)
      changed ||= masked !== held || named !== name
      entry[0] = named
      entry[1] = masked
    }
    return changed ? Object.fromEntries(entries) : value
  }

  #add(form: Form): void {
    const { text } = form
    for (let at = 0; at + BLOCK <= this.#window; at++) {
      const slot = slotOf(text, at)
      this.#shift[slot] = Math.min(this.#shift[slot]!, this.#window - BLOCK - at)
    }
    push(this.#byEnd, slotOf(text, this.#window - BLOCK), form)
    push(this.#byStart, slotOf(text, 0), form)
    this.#starts[slotOf(text, 0)] = 1
    for (let length = 1; length < BLOCK; length++) this.#short.add(text.slice(0, length))
  }

  /** The ranges that contain values, also where characters are escaped. */
  #found(text: string): Shown[] {
    const all = this.#shown(text)
    let added = false
    for (const { text: view, sourceOf } of viewsOf({ text, sourceOf: at => at }))
      for (const { start, end, names } of this.#shown(view)) {
        all.push({ start: sourceOf(start), end: sourceOf(end), names })
        added = true
      }
    return added ? merged(all) : all
  }

  /** The position at which a form may begin that the text only contains in part, also where it is escaped. */
  #beginsAt(text: string): number {
    let least = this.#openAt(text)
    for (let view: EscapedView = { text, sourceOf: at => at }, depth = 0; ; depth++) {
      const begun = begunEscape(view.text)
      const rest = { text: view.text.slice(0, begun), sourceOf: view.sourceOf }
      least = Math.min(least, view.sourceOf(begun ?? view.text.length), view.sourceOf(this.#openAt(rest.text)))
      const [next] = depth < DEPTH ? viewsOf(rest) : []
      if (!next) return least
      view = next
    }
  }

  /** The ranges that contain values, in order; overlapping ranges are merged. */
  #shown(text: string): Shown[] {
    const found: Shown[] = []
    const shift = this.#shift
    const last = this.#window - BLOCK
    for (let at = last; at + BLOCK <= text.length;) {
      const slot = slotOf(text, at)
      const step = shift[slot]!
      if (step > 0) {
        at += step
        continue
      }
      const start = at - last
      const form = this.#byEnd.get(slot)?.find(each => text.startsWith(each.text, start))
      if (form) join(found, start, form)
      at += 1
    }
    return found
  }

  /** The position at which a form may begin that the text only contains in part. */
  #openAt(text: string): number {
    for (let at = Math.max(0, text.length - this.#longest + 1); at < text.length; at++) {
      const left = text.length - at
      if (left < BLOCK) {
        if (this.#short.has(text.slice(at))) return at
        continue
      }
      const slot = slotOf(text, at)
      if (!this.#starts[slot]) continue
      const rest = text.slice(at)
      if (this.#byStart.get(slot)!.some(form => form.text.length > left && form.text.startsWith(rest))) return at
    }
    return text.length
  }
}

/** Masks a text that arrives in pieces; holds back only an end that may be the beginning of a value. */
export class MaskedStream {
  readonly #masker: Pick<Masker, 'mask' | 'settled'>
  #held = ''

  constructor(masker: Pick<Masker, 'mask' | 'settled'>) {
    this.#masker = masker
  }

  /** Adds a piece and returns the masked text that cannot change any more. */
  push(piece: string): string {
    const text = this.#held + piece
    const { length, masked } = this.#masker.settled(text)
    this.#held = text.slice(length)
    return masked
  }

  /** Ends the text and returns the rest, masked. */
  end(): string {
    const rest = this.#masker.mask(this.#held)
    this.#held = ''
    return rest
  }
}

/** Escapes that are escaped again, as HTML in JSON in HTML, are read to this depth. */
const DEPTH = 3

/** A text with its escapes read, once and again. */
function* viewsOf({ text, sourceOf }: EscapedView): Generator<EscapedView> {
  for (let depth = 0; depth < DEPTH; depth++) {
    const view = escapedView(text)
    if (!view) return
    const outer = sourceOf
    sourceOf = at => outer(view.sourceOf(at))
    text = view.text
    yield { text, sourceOf }
  }
}

/** Ranges in order, those that overlap as one. */
const merged = (all: readonly Shown[]): Shown[] => {
  const found: Shown[] = []
  for (const { start, end, names } of all.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const before = found.at(-1)
    if (!before || start >= before.end) found.push({ start, end, names: [...names] })
    else if (end > before.end) {
      before.end = end
      before.names.push(...names.filter(name => !before.names.includes(name)))
    }
  }
  return found
}

const push = (forms: Map<number, Form[]>, slot: number, form: Form): void => {
  const there = forms.get(slot)
  if (there) there.push(form)
  else forms.set(slot, [form])
}

const join = (found: Shown[], start: number, { text, name }: Form): void => {
  const end = start + text.length
  const before = found.at(-1)
  if (!before || start >= before.end) return void found.push({ start, end, names: [name] })
  if (end <= before.end) return
  before.end = end
  if (before.names.at(-1) !== name) before.names.push(name)
}

/** The first `length` characters of a text, with references in place of the ranges. */
const replaced = (text: string, found: readonly Shown[], length: number): string => {
  let out = ''
  let from = 0
  for (const { start, end, names } of found) {
    if (start >= length) break
    out += text.slice(from, start) + names.map(referenceTo).join('')
    from = end
  }
  return from === 0 ? text.slice(0, length) : out + text.slice(from, length)
}
