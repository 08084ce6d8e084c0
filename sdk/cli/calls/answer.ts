import type { CliColumn, CliColumns, CliInput, CliSentence, CliVerb } from '../../cli-table.js'
import { columns, counted, plain, short, wrapped } from '../terminal/text.js'
import { valueForm, valueWords, nameWords } from '../terminal/values.js'

/** The most characters of a table cell. */
const CELL = 60
const MOST_COLUMNS = 8
/** With fewer columns than this, a value stands below its title. */
const BESIDE = 16

type Row = { readonly [name: string]: unknown }

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)
const isTable = (value: unknown): value is readonly Row[] =>
  Array.isArray(value) && value.length > 0 && value.every(isRow)

/** What an answer is shown with. */
export interface AnswerContext {
  readonly verb?: CliVerb
  readonly input?: CliInput
  readonly width?: number | undefined
  readonly now: number
  /** The command itself, for hints. */
  readonly self: string
  /** What was done, of a call whose answer says nothing else. */
  readonly did: string
}

/** The text of an answer, as its verb's table says; without one, lists of objects as tables and fields as lines. */
export const answerLines = (answer: unknown, shown: AnswerContext): string[] => {
  const { verb } = shown
  if (verb?.rows !== undefined) return listOf(answer, verb, [verb.rows].flat(), shown)
  const lines = [
    ...(verb?.done === undefined ? [] : [sentence(verb.done, { ...shown.input, ...(isRow(answer) && answer) }, shown)]),
    ...(verb?.columns ? fieldLines(answer, verb.columns, shown) : []),
    ...linesOf(answer, verb?.above, shown),
    ...Object.entries(verb?.lists ?? {}).flatMap(([title, { rows, columns: cells }]) => {
      const list = fieldOf(answer, rows)
      return Array.isArray(list) && list.length > 0 ? ['', title, ...tableRows(list, cells, shown)] : []
    }),
    ...linesOf(answer, verb?.below, shown),
  ]
  if (verb?.done !== undefined || verb?.columns || verb?.lists) return lines[0] === '' ? lines.slice(1) : lines
  // A map without an entry is no change.
  if (verb?.none !== undefined && isRow(answer) && Object.keys(answer).length === 0)
    return [sentence(verb.none, { ...shown.input }, shown)]
  return isRow(answer) && Object.keys(answer).every(name => name === 'ok')
    ? [answer.ok === false ? `${shown.did}: nothing changed` : shown.did]
    : derivedLines(answer, shown)
}

/** An event of a stream as its verb's table says; undefined: it says nothing about this kind. */
export const eventLine = (event: unknown, shown: AnswerContext): string | undefined => {
  const text = shown.verb?.events?.[String(fieldOf(event, 'kind'))]
  return text === undefined ? undefined : sentence(text, { ...shown.input, ...(isRow(event) && event) }, shown)
}

const listOf = (answer: unknown, verb: CliVerb, rows: readonly string[], shown: AnswerContext): string[] => {
  const { columns: cells, blocks, none, reversed, total, without = {} } = verb
  const found = rows
    .flatMap((each): unknown => fieldOf(answer, each) ?? [])
    .filter(row => !Object.entries(without).some(([field, value]) => fieldOf(row, field) === value)) as readonly Row[]
  const list = reversed ? found.toReversed() : found
  const left = total ? Number(fieldOf(answer, total.field) ?? 0) - found.length : 0
  const more = verb.more ? fieldLines(answer, verb.more, shown) : []
  const above = linesOf(answer, verb.above, shown)
  const below = [
    ...linesOf(answer, verb.below, shown),
    ...(total && left > 0 ? [sentence(total.text, { left }, shown)] : []),
  ]
  if (list.length === 0)
    return [
      ...above,
      none === undefined ? 'none' : sentence(none, { ...shown.input, ...(isRow(answer) && answer) }, shown),
      ...more,
      ...below,
    ]
  const shownList = () => {
    if (!cells) return derivedTable(list, shown)
    if (!blocks) return tableRows(list, cells, shown)
    return list.flatMap((row, at) => [...(at > 0 ? [''] : []), ...fieldLines(row, cells, shown)])
  }
  return [...above, ...shownList(), ...(more.length > 0 ? ['', ...more] : []), ...below]
}

/** A sentence for each entry of the lists of an answer. */
const linesOf = (answer: unknown, lines: readonly CliSentence[] = [], shown: AnswerContext): string[] =>
  lines.flatMap(({ rows, if: has, text, first }) => {
    const entries = answerEntries(answer, rows === '' ? [] : rows.split('.')).filter(
      entry => has === undefined || isThere(fieldOf(entry, has)),
    )
    return entries
      .slice(0, first ? 1 : undefined)
      .flatMap(entry => wrapped(sentence(text, { ...shown.input, ...entry }, shown).trimEnd(), shown.width ?? Infinity))
  })

/** The entries of the list of a path, each with what it belongs to as `of`. */
export const answerEntries = (value: unknown, [name, ...rest]: readonly string[], of?: Row): Row[] => {
  if (Array.isArray(value))
    return value.flatMap(each => answerEntries(each, name === undefined ? [] : [name, ...rest], of))
  if (!isRow(value)) return []
  return name === undefined ? [{ ...value, ...(of && { of }) }] : answerEntries(value[name], rest, value)
}

/** What the text of values depends on. */
export type ValueContext = Pick<AnswerContext, 'width' | 'now' | 'self'>

/** Rows of a table with the given columns. */
export const tableRows = (list: readonly unknown[], cells: CliColumns, shown: ValueContext): string[] => {
  const used = Object.entries(cells)
    .map(([title, cell]): [string, CliColumn] => [title, columnOf(cell)])
    .filter(([, column]) => !column.optional || list.some(row => !isEmpty(found(row, column).value)))
  return columns(
    [
      used.map(([title]) => title.toUpperCase()),
      ...list.map(row => used.map(([, column]) => short(cellWords(row, column, shown), column.most ?? CELL))),
    ],
    shown.width,
  )
}

/** One line for each value that is there: `title  value`; a text of several lines below its title. */
const fieldLines = (answer: unknown, cells: CliColumns, shown: ValueContext): string[] => {
  const found = Object.entries(cells)
    .map(([title, cell]): [string, string] => [title, longWords(answer, columnOf(cell), shown)])
    .filter(([, value]) => value !== '')
  const widest = Math.max(0, ...found.map(([title]) => title.length))
  const room = (shown.width ?? Infinity) - widest - 2
  return found.flatMap(([title, value]) => {
    if (value.includes('\n')) return [title, ...value.split('\n').map(line => `  ${line}`)]
    if (room < BESIDE) return [title, ...wrapped(value, room + widest).map(line => `  ${line}`)]
    return wrapped(value, room).map((line, at) => `${(at === 0 ? title : '').padEnd(widest)}  ${line}`)
  })
}

type Cell = CliColumns[string]
const isField = (cell: Cell): cell is string | readonly string[] => typeof cell === 'string' || Array.isArray(cell)
const columnOf = (cell: Cell): CliColumn => (isField(cell) ? { field: cell } : cell)

const found = (row: unknown, { field }: CliColumn): { name: string; value: unknown } => {
  const names = [field].flat()
  const name = names.find(each => !isEmpty(fieldOf(row, each))) ?? names[0]!
  return { name, value: fieldOf(row, name) }
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)

/** What `{field?yes:no}` and `if` ask for. */
const isThere = (value: unknown): boolean => !isEmpty(value) && value !== false && value !== 0

const cellWords = (row: unknown, column: CliColumn, shown: ValueContext): string => {
  const { name, value: whole } = found(row, column)
  const { last } = column
  const value = last !== undefined && Array.isArray(whole) ? whole.findLast(each => fieldOf(each, last)) : whole
  if (Array.isArray(value) && value.length === 0 && column.empty !== undefined) return column.empty
  if (isEmpty(value)) return column.none ?? ''
  const text = column.text?.[name]
  if (text !== undefined) return sentence(text, last === undefined ? row : value, shown)
  const word = (each: unknown) => {
    const text = column.words?.[String(each)]
    return text === undefined ? undefined : sentence(text, row, shown)
  }
  if (Array.isArray(value))
    return value.map(each => word(each) ?? valueWords(column.as ?? valueForm(name), each, shown.now)).join(', ')
  return word(value) ?? valueWords(column.as ?? valueForm(name), value, shown.now)
}

/** As in a table, but a text keeps its lines. */
const longWords = (row: unknown, column: CliColumn, shown: ValueContext): string => {
  const { value } = found(row, column)
  const long = typeof value === 'string' && value.trimEnd().includes('\n') && !column.words
  return long ? plain(value).trimEnd() : short(cellWords(row, column, shown), column.most ?? Infinity)
}

/** A field of a field of a value; of a list the field of each. */
export const fieldOf = (value: unknown, path: string): unknown => {
  if (path === '') return value
  const [name = '', ...rest] = path.split('.')
  if (Array.isArray(value)) {
    if (name === 'length') return value.length
    if (/^\d+$/.test(name)) return fieldOf(value[Number(name)], rest.join('.'))
    return value.map((each: unknown) => fieldOf(each, path)).filter(each => each !== undefined)
  }
  return isRow(value) ? fieldOf(value[name], rest.join('.')) : undefined
}

/** The value of a sentence that is one place alone, with its lines, such as the text of a file. */
const wholeText = (text: string, values: unknown): string | undefined => {
  const path = /^\{([\w.]+)\}$/.exec(text)?.[1]
  const value = path === undefined ? undefined : fieldOf(values, path)
  return typeof value === 'string' ? plain(value).trimEnd() : undefined
}

const PLACE = /\{([\w.]+)(?:\?([^:}]*):([^}]*)|#([^}]*))?\}/g

/** A sentence with values in its places. */
export const sentence = (text: string, values: unknown, { now, self }: Pick<AnswerContext, 'now' | 'self'>): string =>
  wholeText(text, values)
  ?? text
    .replaceAll('{sandbox}', () => self)
    .replace(PLACE, (_, path: string, yes: string | undefined, no = '', noun?: string) => {
      const value = fieldOf(values, path)
      if (yes !== undefined) return isThere(value) ? yes : no
      if (noun !== undefined) return counted(Array.isArray(value) ? value.length : Number(value ?? 0), noun)
      return valueWords(valueForm(path), value, now)
    })

// Without a table ----------------------------------------------------------------------------------------------------

const derivedLines = (answer: unknown, shown: ValueContext): string[] => {
  const { now } = shown
  if (isTable(answer)) return derivedTable(answer, shown)
  if (Array.isArray(answer) && answer.length === 0) return ['none']
  if (!isRow(answer))
    return typeof answer === 'string' ? plain(answer).trimEnd().split('\n') : [oneWord('', answer, now)]
  const entries = Object.entries(answer)
  const lists = entries.filter(([, value]) => Array.isArray(value))
  // A list alone that has nothing in it.
  if (entries.length === 1 && lists.length === 1 && isEmpty(lists[0]![1])) return [`no ${nameWords(lists[0]![0])}`]
  const tables = entries.filter(([, value]) => isTable(value))
  const facts = entries.filter(([, value]) => !isTable(value)).flatMap(([name, value]) => factsOf(name, value, shown))
  return [
    ...facts,
    ...tables.flatMap(([name, rows], at) => [
      ...(facts.length > 0 || at > 0 ? [''] : []),
      ...(tables.length > 1 || facts.length > 0 ? [`${nameWords(name)}:`] : []),
      ...derivedTable(rows as readonly Row[], shown),
    ]),
  ]
}

const factsOf = (name: string, value: unknown, shown: ValueContext): string[] => {
  if (isRow(value)) return Object.entries(value).flatMap(([inner, each]) => factsOf(`${name}.${inner}`, each, shown))
  if (value === '' || (Array.isArray(value) && value.length === 0)) return [`${name}: none`]
  if (isTable(value))
    return [`${name}:`, ...derivedTable(value, { ...shown, width: undefined }).map(line => `  ${line}`)]
  if (typeof value === 'string' && value.includes('\n'))
    return [
      `${name}:`,
      ...plain(value)
        .trimEnd()
        .split('\n')
        .map(line => `  ${line}`),
    ]
  return [`${name}: ${oneWord(name, value, shown.now)}`]
}

/** The first 8 columns that contain plain values. */
const derivedTable = (rows: readonly Row[], around: ValueContext): string[] => {
  const names = [
    ...new Set(
      rows.flatMap(row =>
        Object.entries(row)
          .filter(([, value]) => !isRow(value) && !isTable(value))
          .map(([name]) => name),
      ),
    ),
  ]
  return tableRows(rows, Object.fromEntries(names.slice(0, MOST_COLUMNS).map(name => [nameWords(name), name])), around)
}

const oneWord = (name: string, value: unknown, now: number): string => valueWords(valueForm(name), value, now)
