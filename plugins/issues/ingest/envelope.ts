import { refuse, Refusal } from '../../../sdk/index.js'
import { isTooDeep } from '../../../sdk/node/files/json.js'

const NEWLINE = 0x0a
const MOST_LINE = 64 * 1024
const MOST_ITEM = 1024 * 1024
const MOST_ITEMS = 30

/** A JSON object of a stranger's. */
export interface GivenObject {
  readonly [field: string]: unknown
}

/** One item of an envelope; without a payload it could not be read. */
export interface EnvelopeItem {
  readonly type: string
  readonly payload?: GivenObject
}

/** An envelope: its header, and its items in order. */
export interface Envelope {
  readonly header: GivenObject
  readonly items: readonly EnvelopeItem[]
}

/** The kinds of items that are read; others are counted. */
const READ: ReadonlySet<string> = new Set(['event', 'feedback', 'user_report'])

/** Whether an item was understood: it has a payload, or is of a kind that nothing reads. */
export const isUnderstood = ({ type, payload }: EnvelopeItem): boolean =>
  payload !== undefined || (type !== '' && !READ.has(type))

export const isObject = (value: unknown): value is GivenObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A JSON object of at most 64 levels; undefined: it is none. Refuses deeper ones. */
export const objectOf = (bytes: Buffer): GivenObject | undefined => {
  const text = bytes.toString()
  if (isTooDeep(text)) refuse('too-large', 'expected at most 64 levels of JSON, found more')
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The line that begins at a place, without its end, and where the next one begins. */
const lineAt = (bytes: Buffer, from: number): { line: Buffer; next: number } => {
  const end = bytes.indexOf(NEWLINE, from)
  const line = bytes.subarray(from, end < 0 ? bytes.length : end)
  return { line, next: end < 0 ? bytes.length : end + 1 }
}

const headerLine = (line: Buffer): GivenObject | undefined => {
  if (line.length > MOST_LINE)
    refuse('too-large', `expected lines before items of at most ${MOST_LINE} bytes, found more`)
  return objectOf(line)
}

/** Reads an envelope; what is broken in an item is left out. Refuses one without a header or over its limits. */
export const readEnvelope = (bytes: Buffer): Envelope => {
  const first = lineAt(bytes, 0)
  const header =
    headerLine(first.line)
    ?? refuse('invalid', `expected an envelope with a first line of JSON, found ${bytes.length} bytes without one`)
  const items: EnvelopeItem[] = []
  for (let at = first.next; at < bytes.length;) {
    const { line, next } = lineAt(bytes, at)
    at = next
    if (line.length === 0) continue
    if (items.length >= MOST_ITEMS) refuse('too-large', `expected at most ${MOST_ITEMS} items, found more`)
    const head = headerLine(line)
    const { payload, after } = payloadAt(bytes, next, head?.length)
    at = after
    items.push(itemOf(head, payload))
  }
  return { header, items }
}

/** The payload of an item: so many bytes, or up to the end of the line. */
const payloadAt = (bytes: Buffer, from: number, length: unknown): { payload: Buffer; after: number } => {
  if (typeof length !== 'number' || !Number.isSafeInteger(length) || length < 0) {
    const { line, next } = lineAt(bytes, from)
    return { payload: line, after: next }
  }
  const end = Math.min(bytes.length, from + length)
  return { payload: bytes.subarray(from, end), after: bytes[end] === NEWLINE ? end + 1 : end }
}

const itemOf = (head: GivenObject | undefined, payload: Buffer): EnvelopeItem => {
  if (payload.length > MOST_ITEM) refuse('too-large', `expected items of at most ${MOST_ITEM} bytes, found more`)
  const type = typeof head?.type === 'string' ? head.type : ''
  if (!READ.has(type)) return { type }
  const object = readable(payload)
  return { type, ...(object && { payload: object }) }
}

/** The object of a payload; one that is too deep is broken as any other. */
const readable = (payload: Buffer): GivenObject | undefined => {
  try {
    return objectOf(payload)
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}
