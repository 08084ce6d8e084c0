import { Refusal, refuse } from '../../../sdk/index.js'
import { withEnds, type FileForm } from './file-form.js'

/** What to replace in a text. */
export interface Replacement {
  readonly old: string
  readonly next: string
  /** Every occurrence, not exactly one. */
  readonly all: boolean
}

/** A part of a text, and what comes in its place. */
interface Place {
  readonly from: number
  readonly to: number
  readonly next: string
}

/** A text with replacements made, and how the text to replace was found, if not as it was given. */
export interface ReplacedText {
  readonly text: string
  readonly found?: string
}

/** What a text has at most after a replacement, in characters: no larger file can be read again. */
const MOST_AFTER = 16 * 1024 * 1024
const MOST_PLACES = 1_000_000

const BLANKS = 'with other blanks or line ends'

/**
 * Replaces a text that occurs exactly once, or with `all` every occurrence. Line ends need not be those of the file,
 * which new lines get; if nothing fits then, whole lines are compared without the blanks around them, and one place
 * must fit.
 */
export const replaced = (text: string, path: string, what: Replacement, form: FileForm): ReplacedText => {
  const { old, all } = what
  const exact = placesOf(text, old, withEnds(what.next, endsFor(old, form)))
  const places = exact.length > 0 ? exact : inOtherEnds(text, what, form)
  if (places.length === 1 || (places.length > 1 && all)) return { text: changed(text, path, places) }
  const lines = places.length === 0 ? byLines(text, what, form) : []
  if (lines.length === 1) return { text: changed(text, path, lines), found: BLANKS }
  const times = places.length || lines.length
  const advice =
    places.length === 0 && lines.length === 0
      ? 'read the file again and copy the text exactly'
      : 'include more text around it'
  const like = places.length === 0 && lines.length > 0 ? ` ${BLANKS}` : ''
  return refuse('unprocessable', `${path} holds the text to replace ${times} times${like}, not once; ${advice}`)
}

/** Makes replacements one after another; refuses all of them if one does not fit. */
export const replacedParts = (
  text: string,
  path: string,
  parts: readonly { readonly old: string; readonly new: string; readonly all?: boolean }[],
  form: FileForm,
): ReplacedText => {
  let [now, loose]: [string, number[]] = [text, []]
  for (const [at, { old, new: next, all = false }] of parts.entries()) {
    try {
      const edited = replaced(now, path, { old, next, all }, form)
      now = edited.text
      if (edited.found !== undefined) loose.push(at + 1)
    } catch (error) {
      if (!(error instanceof Refusal) || parts.length === 1) throw error
      refuse(error.reason, `edit ${at + 1} of ${parts.length}: ${error.message}; nothing was changed`)
    }
  }
  if (loose.length === 0) return { text: now }
  const which = parts.length === 1 ? 'the text' : `the text of edit ${loose.join(', ')}`
  return { text: now, found: `${which} was found ${BLANKS}` }
}

const changed = (text: string, path: string, places: readonly Place[]): string => {
  const size = places.reduce((sum, { from, to, next }) => sum + next.length - (to - from), text.length)
  if (size > Math.max(MOST_AFTER, text.length))
    refuse('too-large', `${path} would have ${size} characters, and at most ${MOST_AFTER} are written; use a command`)
  let [after, at] = ['', 0]
  for (const { from, to, next } of places) {
    after += text.slice(at, from) + next
    at = to
  }
  return after + text.slice(at)
}

const placesOf = (text: string, old: string, next: string): Place[] => {
  const places: Place[] = []
  if (old === '') return places
  for (let from = text.indexOf(old); from >= 0; from = text.indexOf(old, from + old.length)) {
    if (places.length === MOST_PLACES)
      refuse('too-large', `the text to replace is there more than ${MOST_PLACES} times; use a command`)
    places.push({ from, to: from + old.length, next })
  }
  return places
}

/** The line ends of new lines: those of the text they replace, else those of the file. */
const endsFor = (old: string, form: FileForm): Pick<FileForm, 'eol'> =>
  old.includes('\n') ? { eol: old.includes('\r\n') ? '\r\n' : '\n' } : form

/** Where a text occurs if line ends are not compared. */
const inOtherEnds = (text: string, { old, next }: Replacement, form: FileForm): Place[] => {
  if (!old.includes('\n')) return []
  const plain = old.replaceAll('\r\n', '\n')
  const { bare, at } = withoutReturns(text)
  return placesOf(bare, plain, '').map(({ from, to }) => {
    const there = text.slice(at(from), at(to))
    return { from: at(from), to: at(to), next: withEnds(next, there.includes('\r\n') ? { eol: '\r\n' } : form) }
  })
}

/** A text with plain line ends, and where a place of it is in the text. */
const withoutReturns = (text: string): { readonly bare: string; readonly at: (place: number) => number } => {
  const removed: number[] = []
  let bare = ''
  let from = 0
  for (let pair = text.indexOf('\r\n'); pair >= 0; pair = text.indexOf('\r\n', pair + 2)) {
    bare += text.slice(from, pair)
    removed.push(bare.length)
    from = pair + 1
  }
  bare += text.slice(from)
  const at = (place: number): number => {
    let [low, high] = [0, removed.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (removed[middle]! < place) low = middle + 1
      else high = middle
    }
    return place + low
  }
  return { bare, at }
}

interface Line {
  readonly from: number
  /** Without its end. */
  readonly text: string
  readonly end: string
}

const linesIn = (text: string): Line[] =>
  [...text.matchAll(/([^\n]*?)(\r?\n|$)/g)].flatMap(({ index, 1: line = '', 2: end = '' }) =>
    line === '' && end === '' ? [] : [{ from: index, text: line, end }],
  )

const indentOf = (line: string): string => /^[ \t]*/.exec(line)![0]
const isBlank = (line: string): boolean => line.trim() === ''

/** A new line as the file writes it: one that it has stays; another gets the indentation of the line it is at. */
const asThere = ({ text }: Line, nth: number, wanted: readonly Line[], there: readonly Line[]): string => {
  const kept = wanted.findIndex(line => line.text.trim() === text.trim())
  if (kept >= 0) return there[kept]!.text
  if (isBlank(text)) return text
  const beside = Math.min(nth, wanted.length - 1)
  const [given, own] = [indentOf(wanted[beside]!.text), indentOf(there[beside]!.text)]
  return text.startsWith(given) ? own + text.slice(given.length) : text
}

/** Where whole lines are the same but for blanks around them; new lines get the indentation of the file. */
const byLines = (text: string, { old, next }: Replacement, form: FileForm): Place[] => {
  const wanted = linesIn(old)
  if (wanted.length === 0 || wanted.every(line => isBlank(line.text))) return []
  const lines = linesIn(text)
  const places: Place[] = []
  for (let at = 0; at + wanted.length <= lines.length; at++) {
    if (!wanted.every((line, nth) => lines[at + nth]!.text.trim() === line.text.trim())) continue
    const [first, last] = [lines[at]!, lines[at + wanted.length - 1]!]
    const there = lines.slice(at, at + wanted.length)
    const moved = linesIn(next).map((line, nth) => asThere(line, nth, wanted, there) + line.end)
    // A text without a line end at its end leaves that of the file.
    const endsOpen = wanted.at(-1)!.end === ''
    const to = last.from + last.text.length + (endsOpen ? 0 : last.end.length)
    places.push({ from: first.from, to, next: withEnds(moved.join(''), last.end === '\r\n' ? { eol: '\r\n' } : form) })
  }
  return places
}
