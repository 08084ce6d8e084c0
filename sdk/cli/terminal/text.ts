import { escapedUnits, SELECTORS, unseenBut } from '../../unseen.js'

const ESC = '\u001b['
/** C0 except tab and line feed, DEL, C1, direction marks, fillers and tags. */
const CONTROL = unseenBut(String.raw`\t\n` + SELECTORS)
/** The control sequences that this program writes: styles, and erasing a line. */
const OWN = new RegExp(`(\\u001b\\[\\d{1,2}m|\\r\\u001b\\[K)|${CONTROL.source}`, 'gu')

/** Escapes the control characters in text from outside. */
export const plain = (text: string): string => text.replaceAll('\r\n', '\n').replace(CONTROL, escapedUnits)

/** Escapes all control characters except this program's own sequences. JSON keeps its value. */
export const shown = (text: string): string => text.replace(OWN, (found, own?: string) => own ?? escapedUnits(found))

/** Escapes a name from outside, such as a path, also its line breaks. */
export const oneLine = (text: string): string => plain(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')

/** A JSON line without control characters. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value).replace(CONTROL, escapedUnits)}\n`

/** Text styles; without colour every style returns the text unchanged. */
export interface Styles {
  readonly dim: (text: string) => string
  readonly bold: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
}

/** The styles of a terminal with or without colour. */
export const stylesOf = (colour: boolean): Styles => {
  const style = (code: number, end: number) => (text: string) =>
    colour && text
      ? text
          .split('\n')
          .map(line => (line ? `${ESC}${code}m${line}${ESC}${end}m` : line))
          .join('\n')
      : text
  return { dim: style(2, 22), bold: style(1, 22), red: style(31, 39), green: style(32, 39), yellow: style(33, 39) }
}

/** Quotes a word for a shell. */
export const quoted = (word: string): string =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** The least width of the last column of a table. */
const LAST = 16

/**
 * Formats rows as a table; each column is as wide as its longest cell, and the last one is not padded.
 *
 * A table wider than `most` wraps its last column; if that would be too narrow, each row becomes a paragraph that
 * begins with its first cell. Words longer than a line are not broken, so that they can be copied.
 */
export const columns = (rows: readonly (readonly string[])[], most: number | undefined): string[] => {
  const width = most ?? Infinity
  const [header = []] = rows
  const widths = header.map((_, at) => Math.max(...rows.map(row => row[at]?.length ?? 0)))
  const before = widths.slice(0, -1).reduce((sum, each) => sum + each + 2, 0)
  if (before + (widths.at(-1) ?? 0) > width && width - before < LAST) return paragraphs(header, rows.slice(1), width)
  return rows.flatMap(row =>
    wrapped(row.at(-1) ?? '', width - before).map((last, line) =>
      [...row.slice(0, -1).map((cell, at) => (line === 0 ? cell : '').padEnd(widths[at]!)), last].join('  ').trimEnd(),
    ),
  )
}

const paragraphs = (header: readonly string[], rows: readonly (readonly string[])[], width: number): string[] => {
  const widest = Math.max(...header.slice(1).map(name => name.length))
  return rows.flatMap(([first = '', ...cells]) => [
    ...wrapped(first, width),
    ...cells.flatMap((cell, at) => (cell ? labelled((header[at + 1] ?? '').toLowerCase(), cell, widest, width) : [])),
  ])
}

/** A cell beside its label, or below it if one of its words is too long. */
const labelled = (label: string, cell: string, widest: number, width: number): string[] => {
  const beside = wrapped(cell, width - widest - 4)
  if (beside.some(line => line.length > width - widest - 4))
    return [`  ${label}`, ...wrapped(cell, width - 4).map(line => `    ${line}`)]
  return beside.map((line, nth) => `  ${(nth === 0 ? label : '').padEnd(widest)}  ${line}`)
}

/** Text in lines of limited width, broken at spaces; a longer word gets its own line. */
export const wrapped = (text: string, width: number): string[] => {
  if (text.length <= width) return [text]
  const lines: string[] = []
  for (const word of text.split(/ +/)) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines
}

/** One line of limited width. */
export const short = (text: string, most: number): string => {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > most ? `${line.slice(0, most - 1)}…` : line
}

/** A number with its noun. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
