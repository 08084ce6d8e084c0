import type { LogLevel } from '../../../logs/contract.js'

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

const LEVELS: { readonly [level: string]: LogLevel } = {
  trace: 'debug',
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  error: 'error',
  fatal: 'error',
}

/** A line of a log: a structured one as its message with the rest behind it, any other as it is. */
export const shownLogLine = (key: string, line: string): ShownLogLine => {
  if (!line.startsWith('{')) return { key, text: line }
  try {
    const { level, at, message, pid: _, ...rest } = JSON.parse(line) as { [name: string]: unknown }
    if (typeof message !== 'string') return { key, text: line }
    const grave = typeof level === 'string' ? LEVELS[level] : undefined
    const more = Object.entries(rest)
      .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
      .join(' ')
    return {
      key,
      text: message,
      ...(grave && { level: grave }),
      ...(typeof at === 'number' && { at }),
      ...(more && { more }),
    }
  } catch {
    return { key, text: line }
  }
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
