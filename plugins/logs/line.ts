import { isAtLeast, logHead, type LogLevel } from '../../sdk/log-line.js'
import type { LogLine } from './contract.js'

const MOST_TEXT = 16 * 1024

/** What ends a line that is not shown whole. */
export const CUT = '… (cut)'

/** Whether a line has at least this level; a line without a level does not. */
export const isGrave = (text: string, least: LogLevel | undefined): boolean => {
  if (least === undefined) return true
  const head = logHead(text)
  return head !== undefined && isAtLeast(head.level, least)
}

/** A line as a follower gets it. */
export const lineOf = (offset: number, text: string): LogLine => {
  const head = logHead(text)
  return {
    offset,
    text: text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT).toWellFormed()}${CUT}` : text,
    ...(head && { level: head.level, at: head.at }),
  }
}
