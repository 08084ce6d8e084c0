/** How much of a sheet or table is shown. */
export const MOST_TABLE_ROWS = 2_000
export const MOST_COLUMNS = 50

/** A text as a cell of a markdown table. */
export const cellText = (text: string): string =>
  text
    .replace(/\\/g, '\\\\')
    .replace(/\|/g, '\\|')
    .replace(/\s*\r?\n\s*/g, ' ')
    .trim()

/** Reads values separated by a character (RFC 4180). */
export const separatedRows = (text: string, separator: string): string[][] => {
  const rows: string[][] = []
  let [row, value, quoted]: [string[], string, boolean] = [[], '', false]
  const endRow = () => {
    row.push(value)
    if (row.length > 1 || value !== '') rows.push(row)
    ;[row, value] = [[], '']
  }
  for (let at = 0; at < text.length && rows.length <= MOST_TABLE_ROWS; at++) {
    const char = text[at]!
    if (quoted) {
      if (char !== '"') value += char
      else if (text[at + 1] === '"') value += text[++at]
      else quoted = false
    } else if (char === '"' && value === '') quoted = true
    else if (char === separator) {
      row.push(value)
      value = ''
    } else if (char === '\n') endRow()
    else if (char !== '\r') value += char
  }
  endRow()
  return rows
}

/** Rows as a markdown table, whose first row is its head. */
export const markdownTable = (rows: readonly (readonly string[])[]): { markdown: string; notes: string[] } => {
  const width = Math.max(1, ...rows.map(row => row.length))
  const columns = Math.min(width, MOST_COLUMNS)
  const line = (row: readonly string[]) =>
    `| ${Array.from({ length: columns }, (_, at) => cellText(row[at] ?? '')).join(' | ')} |`
  const [head = [], ...body] = rows.slice(0, MOST_TABLE_ROWS)
  return {
    markdown: [line(head), `|${' --- |'.repeat(columns)}`, ...body.map(line)].join('\n'),
    notes: [
      ...(rows.length > MOST_TABLE_ROWS ? [`cut at row ${MOST_TABLE_ROWS}`] : []),
      ...(width > MOST_COLUMNS ? [`cut at column ${MOST_COLUMNS}`] : []),
    ],
  }
}
