import type { LogLevel, LogLine } from './contract.js'

const MOST_TEXT = 16 * 1024
const HEAD = /^\{"level":"(\w+)","at":(\d{1,15})[,}]/
const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']
const CALLED: { readonly [level: string]: LogLevel } = { trace: 'debug', fatal: 'error' }

/** What ends a line that is not shown whole. */
export const CUT = '… (cut)'

/** How grave a structured line is, and when it was written. */
export const headOfLine = (text: string): { level?: LogLevel; at?: number } => {
  const [, called = '', at] = HEAD.exec(text) ?? []
  const level = CALLED[called] ?? LEVELS.find(one => one === called)
  return level ? { level, at: Number(at) } : {}
}

/** Whether a line has at least this level; a line without a level does not. */
export const isGrave = (text: string, least: LogLevel | undefined): boolean => {
  if (least === undefined) return true
  const { level } = headOfLine(text)
  return level !== undefined && LEVELS.indexOf(level) >= LEVELS.indexOf(least)
}

/** A line as a follower gets it. */
export const lineOf = (offset: number, text: string): LogLine => ({
  offset,
  text: text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT).toWellFormed()}${CUT}` : text,
  ...headOfLine(text),
})
