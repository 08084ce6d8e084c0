import type { DiffContent, ToolContent } from '../turn/frames/frames.js'

/** What a tool returns at most, in bytes: a model reads less of it, and a file keeps the rest. */
export const MOST_RESULT = 1024 * 1024
const MOST_TEXT = 32 * 1024
const MOST_SIDE = 64 * 1024
const CONTEXT_LINES = 3

/** The text of a file; undefined if the bytes are not UTF-8 text. */
export const textOf = (bytes: Uint8Array): string | undefined => {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const continues = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** The first `most` bytes of a text, whole characters only. */
const head = (text: string, most: number): string => {
  if (text.length * 3 <= most) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  let end = most
  while (end > 0 && continues(bytes[end])) end--
  return bytes.toString('utf8', 0, end)
}

/** Limits a text: keeps its beginning and its end, with a line between them that says how much was left out. */
export const cut = (text: string, most = MOST_TEXT): string => {
  if (text.length * 3 <= most) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  const half = Math.floor((most - 64) / 2)
  let [end, start] = [half, bytes.length - half]
  while (end > 0 && continues(bytes[end])) end--
  while (start < bytes.length && continues(bytes[start])) start++
  return `${bytes.toString('utf8', 0, end)}\n[${start - end} bytes left out]\n${bytes.toString('utf8', start)}`
}

/** A text as the content of a call. */
export const textContent = (text: string): ToolContent[] => [{ type: 'text', text: cut(text) }]

/** The offset of a line start a few lines before the first difference of two texts. */
const firstChange = (one: string, other: string): number => {
  let at = 0
  while (at < one.length && at < other.length && one[at] === other[at]) at++
  for (let lines = 0; lines <= CONTEXT_LINES && at > 0; lines++) at = one.lastIndexOf('\n', at - 1)
  return at + 1
}

/** A file before and after, both sides limited; no `before`: a new file. Of a binary file only the sizes are shown. */
export const change = (path: string, before: Uint8Array | undefined, after: Uint8Array): ToolContent[] => {
  const [oldText, newText] = [before && textOf(before), textOf(after)]
  if (newText === undefined || (before && oldText === undefined)) {
    const earlier = before ? `${before.length} bytes before, ` : ''
    return [{ type: 'text', text: `${path} is binary: ${earlier}${after.length} bytes now` }]
  }
  const large = (text: string | undefined) => text !== undefined && Buffer.byteLength(text) > MOST_SIDE
  if (!large(oldText) && !large(newText)) return [side(path, oldText, newText)]
  const from = oldText === undefined ? 0 : firstChange(oldText, newText)
  const shownOld = oldText === undefined ? undefined : head(oldText.slice(from), MOST_SIDE)
  return [{ ...side(path, shownOld, head(newText.slice(from), MOST_SIDE)), truncated: true }]
}

const side = (path: string, oldText: string | undefined, newText: string): DiffContent => ({
  type: 'diff',
  path,
  ...(oldText !== undefined && { oldText }),
  newText,
})
