import { isDeepStrictEqual } from 'node:util'
import { memberOf, readJsonText, valueOfNode, type JsonItem, type JsonNode } from './json-text.js'

/** The way to a value: keys of objects and indexes of lists. */
export type JsonPath = readonly (string | number)[]

interface Splice {
  readonly at: number
  readonly end: number
  readonly text: string
}

const spliced = (text: string, splices: readonly Splice[]): string =>
  [...splices]
    .sort((one, other) => other.at - one.at)
    .reduce((now, { at, end, text: put }) => now.slice(0, at) + put + now.slice(end), text)

/** How a text is written: its line ends, and by how much it indents. */
interface Form {
  readonly eol: string
  readonly unit: string
}

const BLANKS = /^[ \t]*/
const INDENTED = /\n([ \t]+)\S/

const formOf = (text: string): Form => ({
  eol: text.includes('\r\n') ? '\r\n' : '\n',
  unit: INDENTED.exec(text)?.[1] ?? '  ',
})

const lineStart = (text: string, at: number): number => text.lastIndexOf('\n', at - 1) + 1
const indentAt = (text: string, at: number): string => BLANKS.exec(text.slice(lineStart(text, at), at))![0]
/** Where the blanks in front of a position begin; a pattern that ends there would read long blanks again and again. */
const blanksBefore = (text: string, at: number): number => {
  let begin = at
  while (text[begin - 1] === ' ' || text[begin - 1] === '\t') begin--
  return begin
}
const startsLine = (text: string, at: number): boolean => /^[ \t]*$/.test(text.slice(lineStart(text, at), at))
const isSpread = (text: string, { start, end }: { start: number; end: number }): boolean =>
  text.slice(start, end).includes('\n')

/** Writes a value, each member on a line of its own where it is spread. */
const written = (value: unknown, { eol, unit }: Form, indent: string, spread: boolean): string => {
  if (!spread)
    return JSON.stringify(value, undefined, 1)
      .replace(/\n\s*/g, ' ')
      .replace(/^\[ (.*) \]$/s, '[$1]')
  return JSON.stringify(value, undefined, unit).replaceAll('\n', `${eol}${indent}`)
}

const at = (root: JsonNode, path: JsonPath): JsonNode | undefined =>
  path.reduce<JsonNode | undefined>(
    (node, step) => node && (typeof step === 'number' ? node.items?.[step]?.value : memberOf(node, step)?.value),
    root,
  )

const childrenOf = (node: JsonNode): readonly JsonItem[] => node.members ?? node.items ?? []

/** Puts what `write` makes behind all that a list or an object holds, comments too. */
const added = (
  text: string,
  container: JsonNode,
  spreadWhenEmpty: boolean,
  write: (indent: string, spread: boolean) => string,
): string => {
  const { eol, unit } = formOf(text)
  const children = childrenOf(container)
  const last = children.at(-1)
  const close = container.end - 1
  const base = indentAt(text, container.start)
  const onLines = isSpread(text, container) || (!last && spreadWhenEmpty)
  const indent = last && startsLine(text, children[0]!.start) ? indentAt(text, children[0]!.start) : base + unit
  const spread = last ? isSpread(text, last) : true
  const put = write(indent, onLines && spread)
  // Behind the last comment too, which may end its line.
  const end = container.start + 1 + text.slice(container.start + 1, close).trimEnd().length
  const comma = last && last.comma === undefined ? [{ at: last.end, end: last.end, text: ',' }] : []
  const closing = last?.comma === undefined ? '' : ','
  const behind = text.slice(end, close).includes('\n') || !onLines ? '' : `${eol}${base}`
  const pad = !onLines && !last && container.members ? ' ' : ''
  const before = onLines ? `${eol}${indent}` : last || end > container.start + 1 ? ' ' : pad
  const splice = { at: end, end, text: `${before}${put}${closing}${behind}${pad}` }
  // The comma goes first where both are at one place.
  return spliced(text, [splice, ...comma])
}

const withoutChild = (text: string, container: JsonNode, index: number): string => {
  const children = childrenOf(container)
  const child = children[index]!
  const before = children[index - 1]
  const end = child.comma === undefined ? child.end : child.comma + 1
  const line = /^[ \t]*(?:\/\/[^\r\n]*|\/\*[^\r\n]*?\*\/[ \t]*)?(?:\r?\n)/.exec(text.slice(end))
  const between = child.comma === undefined ? '' : text.slice(child.end, child.comma)
  // What was the last one has no comma, and so has the one that is the last now.
  const comma =
    child.comma === undefined && before?.comma !== undefined
      ? [{ at: before.comma, end: before.comma + 1, text: '' }]
      : []
  const ownLines = startsLine(text, child.start) && line && !between.includes('\n')
  if (ownLines)
    return spliced(text, [{ at: lineStart(text, child.start), end: end + line[0].length, text: '' }, ...comma])
  const blanks = /^[ \t]*/.exec(text.slice(end))![0].length
  const isFirst = index === 0
  const own = { at: isFirst ? child.start : blanksBefore(text, child.start), end: child.end, text: '' }
  const ownComma = child.comma === undefined ? [] : [{ at: child.comma, end: end + (isFirst ? blanks : 0), text: '' }]
  return spliced(text, [own, ...ownComma, ...comma])
}

/** Sets a value of JSON with comments; all else stays as it is written. The way to its object must be there. */
export const withValue = (text: string, path: JsonPath, value: unknown): string => {
  const root = readJsonText(text)
  const known = at(root, path)
  const form = formOf(text)
  if (known && isDeepStrictEqual(valueOfNode(known), value)) return text
  if (known) {
    const put = written(value, form, indentAt(text, known.start), isSpread(text, known))
    return spliced(text, [{ at: known.start, end: known.end, text: put }])
  }
  const container = at(root, path.slice(0, -1))
  const key = path.at(-1)
  if (!container?.members || typeof key !== 'string') throw new Error('the way to a value leads to no object')
  return added(text, container, path.length === 1, (indent, spread) => {
    return `${JSON.stringify(key)}: ${written(value, form, indent, spread || path.length === 1)}`
  })
}

/** Adds an item behind all others of a list, which must be there. */
export const withItem = (text: string, path: JsonPath, value: unknown): string => {
  const list = at(readJsonText(text), path)
  if (!list?.items) throw new Error('the way to a list leads to none')
  const form = formOf(text)
  return added(text, list, true, (indent, spread) => written(value, form, indent, spread))
}

/**
 * Removes a value with its comma and the comment behind it on its line; other comments stay. What is not there stays
 * away.
 */
export const withoutValue = (text: string, path: JsonPath): string => {
  const container = at(readJsonText(text), path.slice(0, -1))
  const step = path.at(-1)
  if (!container) return text
  const index = typeof step === 'number' ? step : (container.members ?? []).findIndex(({ key }) => key === step)
  return childrenOf(container)[index] ? withoutChild(text, container, index) : text
}
