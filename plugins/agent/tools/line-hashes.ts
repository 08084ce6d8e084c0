import { hash } from 'node:crypto'
import { refuse } from '../../../sdk/index.js'

/** A change of lines that are named by number and hash, such as `12:9f3c`. */
export interface LineEdit {
  readonly from?: string
  readonly to?: string
  /** `0`: before the first line. */
  readonly after?: string
  readonly new: string
}

/** Lines shown around a change. */
const AROUND = 3
const MOST_SHOWN = 60
const BEGINNING = '0'

/** The lines of a text, without their line breaks; a break at the end begins no line. */
const linesOf = (text: string): string[] => {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

const hashOf = (line: string): string => hash('sha256', line.replace(/^\uFEFF|\r$/g, ''), 'hex').slice(0, 4)

const named = (line: string, number: number): string => `${number}:${hashOf(line)}|${line}`

/** A text with the number and the hash of each line before it; `first` is the number of its first line. */
export const withHashes = (text: string, first = 1): string =>
  linesOf(text)
    .map((line, at) => named(line, first + at))
    .join('\n')

/** The lines around some lines, as `Read` shows them. */
const shownAround = (lines: readonly string[], from: number, to: number): string => {
  const start = Math.max(0, from - 1 - AROUND)
  const end = Math.min(lines.length, to + AROUND, start + MOST_SHOWN)
  return lines
    .slice(start, end)
    .map((line, at) => named(line, start + at + 1))
    .join('\n')
}

/** The text after an edit of its lines, and the lines around the change as they are then; refuses outdated names. */
export const editedLines = (text: string, path: string, edit: LineEdit): { after: string; shown: string } => {
  const lines = linesOf(text)
  const at = (name: string): number => {
    const [number, wanted] = name.split(':')
    const nth = Number(number)
    const line = lines[nth - 1]
    if (line !== undefined && hashOf(line) === wanted) return nth
    const found = lines.length === 0 ? 'it is empty' : `its lines there are now:\n${shownAround(lines, nth, nth)}`
    const far = nth > lines.length + AROUND && lines.length > 0
    return refuse(
      'conflict',
      `${path} has no line ${name}: the file has changed since it was read; `
        + (far ? `it has ${lines.length} lines: read it again` : found),
    )
  }
  const last = edit.after === undefined ? at(edit.to ?? edit.from!) : undefined
  const first = edit.after === undefined ? at(edit.from!) : edit.after === BEGINNING ? 1 : at(edit.after) + 1
  if (last !== undefined && last < first)
    refuse('unprocessable', `to: expected line ${first} or a later one, found line ${last}`)
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const added = linesOf(edit.new).map(line => (eol === '\n' ? line : line.replace(/\r?$/, '\r')))
  const changed = [...lines.slice(0, first - 1), ...added, ...lines.slice(last ?? first - 1)]
  const ends = text === '' || text.endsWith('\n')
  const after = changed.join('\n') + (changed.length > 0 && ends ? '\n' : '')
  return {
    after: ends ? after : after.replace(/\r$/, ''),
    shown: shownAround(changed, first, first + Math.max(0, added.length - 1)),
  }
}
