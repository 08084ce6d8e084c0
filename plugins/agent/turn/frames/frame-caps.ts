import type { Frame, ToolContent } from './frames.js'

const KIB = 1024
export const DELTA_BYTES = 8 * KIB
const TEXT_BYTES = 32 * KIB
const DIFF_BYTES = 64 * KIB
const FRAME_BYTES = 256 * KIB
const FIELD_BYTES = 4 * KIB
const FIELDS = 24

const encoder = new TextEncoder()
const room = new Uint8Array(DIFF_BYTES)

const fits = (text: string, bytes: number) => text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes

/** The longest beginning of at most `bytes` bytes that splits no character. */
export const head = (text: string, bytes: number): string =>
  fits(text, bytes) ? text : text.slice(0, encoder.encodeInto(text, room.subarray(0, bytes)).read)

const tail = (text: string, bytes: number): string => {
  let from = text.length - bytes
  if (from < 0) from = 0
  while (from < text.length && !fits(text.slice(from), bytes))
    from += Math.ceil((Buffer.byteLength(text.slice(from)) - bytes) / 3)
  const code = text.charCodeAt(from)
  return text.slice(code >= 0xdc00 && code <= 0xdfff ? from + 1 : from)
}

/** Splits a text into pieces of at most `bytes` bytes. */
export const pieces = (text: string, bytes: number): string[] => {
  const found: string[] = []
  for (let rest = text; rest;) {
    const piece = head(rest, bytes)
    found.push(piece)
    rest = rest.slice(piece.length)
  }
  return found
}

const cutText = (text: string): string => {
  if (fits(text, TEXT_BYTES)) return text
  const half = TEXT_BYTES / 2 - 64
  const [first, last] = [head(text, half), tail(text, half)]
  const lost = Buffer.byteLength(text) - Buffer.byteLength(first) - Buffer.byteLength(last)
  return `${first}\n[… ${lost} bytes cut …]\n${last}`
}

const cutContent = (content: ToolContent): ToolContent => {
  if (content.type === 'text') return { ...content, text: cutText(content.text) }
  if (content.type === 'image') return content
  const { oldText, newText } = content
  if (fits(newText, DIFF_BYTES) && (oldText === undefined || fits(oldText, DIFF_BYTES))) return content
  return {
    ...content,
    ...(oldText !== undefined && { oldText: head(oldText, DIFF_BYTES) }),
    newText: head(newText, DIFF_BYTES),
    truncated: true,
  }
}

/** Estimates the size of a value as JSON, without serializing it. */
export const weigh = (value: unknown): number => {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || !value) return 8
  let sum = 2
  for (const [key, inner] of Object.entries(value)) sum += key.length + 4 + weigh(inner)
  return sum
}

const shorten = (value: unknown): unknown => {
  if (typeof value === 'string') return head(value, FIELD_BYTES)
  if (Array.isArray(value)) return value.slice(0, FIELDS).map(shorten)
  if (typeof value !== 'object' || !value) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shorten(inner)]))
}

/** The frame within the size limits of the log, with markers where text was cut. */
export const capped = (frame: Frame): Frame => {
  let within = frame
  if ((frame.kind === 'tool_call' || frame.kind === 'tool_call_update') && frame.content)
    within = { ...frame, content: frame.content.map(cutContent) }
  const weight = weigh(within)
  if (weight * 3 <= FRAME_BYTES || (weight <= FRAME_BYTES && Buffer.byteLength(JSON.stringify(within)) <= FRAME_BYTES))
    return within
  // The kind is kept, and so is every string a reader could tell apart by its beginning.
  return shorten(within) as Frame
}

/** The frame without the parts that a run beyond its limits does not record; undefined when nothing is left. */
export const thinned = (frame: Frame): Frame | undefined => {
  if (frame.kind === 'delta' || frame.kind === 'thinking') return undefined
  if (frame.kind !== 'tool_call' && frame.kind !== 'tool_call_update') return frame
  const { content: _dropped, ...rest } = frame
  return rest
}
