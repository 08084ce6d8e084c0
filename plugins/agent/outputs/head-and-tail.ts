/** The beginning and the end of a text, each of whole lines where lines are short. */
export interface HeadAndTail {
  readonly head: string
  readonly tail: string
  /** The lines that are left out, all or in part, from 1. */
  readonly from: number
  readonly to: number
  /** All lines of the text. */
  readonly lines: number
  readonly bytes: number
  readonly bytesLeft: number
}

const NEWLINE = 10
const HEAD = 0.6

const continues = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

const linesIn = (bytes: Buffer): number => {
  let lines = 0
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines++
  return lines
}

/** The end of the last whole line before a place, or of the last whole character where the line is long. */
const endBefore = (bytes: Buffer, place: number): number => {
  const line = bytes.lastIndexOf(NEWLINE, place - 1) + 1
  if (line > place / 2) return line
  let end = place
  while (end > 0 && continues(bytes[end])) end--
  return end
}

/** The beginning of the first whole line from a place on, or of the first whole character. */
const startAfter = (bytes: Buffer, place: number): number => {
  const line = bytes.indexOf(NEWLINE, place - 1) + 1
  if (line > 0 && line - place < (bytes.length - place) / 2) return line
  let start = place
  while (start < bytes.length && continues(bytes[start])) start++
  return start
}

/** The beginning and the end of a text of more than `most` bytes; undefined: it is not longer. */
export const headAndTail = (text: string, most: number): HeadAndTail | undefined => {
  if (text.length * 3 <= most) return undefined
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return undefined
  const first = Math.floor(most * HEAD)
  const end = endBefore(bytes, first)
  const start = Math.max(end, startAfter(bytes, bytes.length - (Math.floor(most) - first)))
  const [head, tail] = [bytes.subarray(0, end), bytes.subarray(start)]
  const lines = linesIn(bytes) + (bytes.at(-1) === NEWLINE ? 0 : 1)
  const from = linesIn(head) + 1
  const ended = tail.length === 0 || bytes[start - 1] === NEWLINE
  const after = linesIn(tail) + (tail.length > 0 && tail.at(-1) !== NEWLINE ? 1 : 0)
  return {
    ...{ head: head.toString(), tail: tail.toString(), from, lines, bytes: bytes.length, bytesLeft: start - end },
    to: Math.max(from, lines - after + (ended ? 0 : 1)),
  }
}

/** Both parts with a line between them that says what is left out; `more` says where it is. */
export const partsText = ({ head, tail, from, to, lines, bytes, bytesLeft }: HeadAndTail, more = ''): string => {
  const where = from === to ? `a part of line ${from}` : `lines ${from} to ${to}`
  const gap = head === '' || head.endsWith('\n') ? '' : '\n'
  return `${head}${gap}[left out: ${where} of ${lines}, ${bytesLeft} of ${bytes} bytes${more}]\n${tail}`
}

/** A text of at most about `most` bytes: its beginning and its end. */
export const shortText = (text: string, most: number): string => {
  const parts = headAndTail(text, most)
  return parts ? partsText(parts) : text
}
