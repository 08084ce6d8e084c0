import { stripVTControlCharacters } from 'node:util'
import { redacted } from '../../../sdk/node/access/redact.js'
import type { Masker } from '../../../sdk/node/access/masker.js'

/** What forges write before each line: a time, and at GitLab which stream it is from. */
const STAMP = /^\uFEFF?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?: \d{2}[OE][+ ]?)? ?/
/** Where GitLab folds its logs. */
const SECTION = /section_(?:start|end):\d+:[\w.-]+(?:\[[^\]]*\])?\r?/g
const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g
const MARKS = /^##\[(?:end)?group\]/

/** A job's log as plain text: what a screen would show, without time stamps and values of secrets. */
export const plainLog = (text: string, masker: Pick<Masker, 'mask'>): string => {
  const lines = text.toWellFormed().replaceAll('\r\n', '\n').split('\n')
  const plain = lines.map(line => {
    const clean = stripVTControlCharacters(line.replace(STAMP, '').replace(SECTION, ''))
    // A line that was written over shows as it was last.
    const shown = clean.replace(/\r+$/, '').split('\r').at(-1) ?? ''
    return shown.replace(MARKS, '').replace(UNSEEN, '')
  })
  return masker.mask(redacted(plain.join('\n')))
}

const FAILURE = new RegExp(
  [
    String.raw`##\[error\]|[✗✖✘]|\berror\b|\bERR!|\bFAIL(?:ED|URE)?\b|\bnot ok\b`,
    String.raw`\bTraceback\b|\bpanicked\b|\bpanic:|\b\w*Exception\b`,
  ].join('|'),
  'i',
)
const HARMLESS = new RegExp(
  [
    String.raw`\b(?:0|no) (?:errors?|failures?|failed)\b`,
    String.raw`\b(?:errors?|fail(?:ed|ures?)?)[:=]? ?0\b`,
    String.raw`--[\w-]*error`,
  ].join('|'),
  'i',
)

/** A part of a log; offsets and sizes are bytes of its text. */
export interface LogPart {
  readonly text: string
  readonly offset: number
  readonly sizeBytes: number
  /** There is more before or behind it. */
  readonly truncated: boolean
}

/** Where in a log the part begins that is asked for. */
const startOf = (log: string, size: number, { bytes, offset, find }: WindowAsked): number => {
  if (offset !== undefined) return Math.min(offset, size)
  const tail = Math.max(0, size - bytes)
  if (!find) return tail
  let at = 0
  for (const line of log.split('\n')) {
    if (FAILURE.test(line) && !HARMLESS.test(line)) return Math.min(tail, Math.max(0, at - Math.floor(bytes / 4)))
    at += Buffer.byteLength(line) + 1
  }
  return tail
}

export interface WindowAsked {
  readonly bytes: number
  readonly offset?: number
  readonly find?: 'failure'
}

const isContinued = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** A part of a log, cut between characters. */
export const logWindow = (log: string, asked: WindowAsked): LogPart => {
  const all = Buffer.from(log)
  let from = startOf(log, all.length, asked)
  while (from < all.length && isContinued(all[from])) from += 1
  let to = Math.min(all.length, from + asked.bytes)
  while (to > from && to < all.length && isContinued(all[to])) to -= 1
  return {
    text: all.subarray(from, to).toString(),
    offset: from,
    sizeBytes: all.length,
    truncated: from > 0 || to < all.length,
  }
}
