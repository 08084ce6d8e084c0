import { fieldsInWords, readLogLine, type LogLevel } from '../../../../sdk/log-line.js'

/** One line of a log as a page shows it. */
export interface ShownLogLine {
  readonly key: string
  readonly text: string
  readonly level?: LogLevel
  readonly at?: number
  /** The other fields of a structured line. */
  readonly more?: string
}

/** The number of lines that a page of a log keeps; older ones are read again on demand. */
export const MOST_LINES = 5_000

/** A line of a log: a structured one as its message with the rest behind it, any other as it is. */
export const shownLogLine = (key: string, line: string): ShownLogLine => {
  const structured = readLogLine(line)
  if (!structured) return { key, text: line }
  const { level, at, message, pid: _, ...rest } = structured
  const more = fieldsInWords(rest)
  return { key, text: message, level, at, ...(more && { more }) }
}

/** The lines of a window of a log. */
export const shownLogLines = (text: string, offset: number): ShownLogLine[] => {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.map((line, index) => shownLogLine(`${offset}.${index}`, line))
}

/** Lines with one more at the end; drops the oldest if there are too many. */
export const withLines = (known: readonly ShownLogLine[], added: readonly ShownLogLine[]): readonly ShownLogLine[] =>
  [...known, ...added].slice(-MOST_LINES)
