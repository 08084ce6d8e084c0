const ESC = '\u001b['
/**
 * What steers a terminal or reorders a line: C0 without tab and line feed, DEL, C1, marks of direction, and what is not
 * seen.
 */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g
/** What this program itself says to a terminal: a style, and to draw over a line. */
const OWN = new RegExp(`(\\u001b\\[\\d{1,2}m|\\r\\u001b\\[K)|${CONTROL.source}`, 'g')

const escaped = (found: string): string => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Text from elsewhere with whatever could steer a terminal or reorder a line made visible. */
export const plain = (text: string): string => text.replaceAll('\r\n', '\n').replace(CONTROL, escaped)

/** Text as it may go to a terminal: only this program's own words steer it. JSON stays JSON of the same value. */
export const shown = (text: string): string => text.replace(OWN, (found, own?: string) => own ?? escaped(found))

/** A foreign name, such as a path, which must not break the line. */
export const oneLine = (text: string): string => plain(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')

/** A JSON line that no terminal reads as anything else. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value).replace(CONTROL, escaped)}\n`

/** How words are set off from each other; without colour every style leaves the text as it is. */
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

/** A word as a person may paste it into a shell. */
export const quoted = (word: string): string =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** The least room that the last column of a table is given. */
const LAST = 16

/**
 * Rows below their header as columns, each as wide as its longest cell; the last one is not padded.
 *
 * Where that is wider than `most`, the last column is wrapped; where it would get too little room, every row becomes a
 * paragraph that begins with its first cell. A word that is longer than a line is not broken, so that it can be copied.
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

/** A cell beside its label, or below it where a word of it would not fit beside. */
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

/** How long ago, in the largest unit that fits. */
export const ago = (at: number, now: number): string => {
  const seconds = Math.max(0, Math.round((now - at) / 1000))
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}
