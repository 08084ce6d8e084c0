import { columns, oneLine, plain, short } from '../terminal/text.js'
import { hyphenated } from './operation.js'

/** The most characters of a table cell. */
const CELL = 60
const MOST_COLUMNS = 8
/** A number named `at` or `…At` is a time in milliseconds if it lies after 2001. */
const TIME = /^at$|At$/
const FIRST_TIME = 1e12

type Row = { readonly [name: string]: unknown }

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)
const isTable = (value: unknown): value is readonly Row[] =>
  Array.isArray(value) && value.length > 0 && value.every(isRow)

/** Formats an answer: lists of objects as tables, everything else one line per field. */
export const answerLines = (answer: unknown, width: number | undefined): string[] => {
  if (isTable(answer)) return tableOf(answer, width)
  if (!isRow(answer)) return [textOf('', answer)]
  const entries = Object.entries(answer)
  const tables = entries.filter(([, value]) => isTable(value))
  const facts = entries.filter(([, value]) => !isTable(value)).flatMap(([name, value]) => factsOf(name, value))
  return [
    ...facts,
    ...tables.flatMap(([name, rows], at) => [
      ...(facts.length > 0 || at > 0 ? [''] : []),
      ...(tables.length > 1 ? [`${name}:`] : []),
      ...tableOf(rows as readonly Row[], width),
    ]),
  ]
}

const factsOf = (name: string, value: unknown): string[] => {
  if (isRow(value)) return Object.entries(value).flatMap(([inner, each]) => factsOf(`${name}.${inner}`, each))
  if (Array.isArray(value) && value.length === 0) return [`${name}: none`]
  if (isTable(value)) return [`${name}:`, ...tableOf(value, undefined).map(line => `  ${line}`)]
  if (typeof value === 'string' && value.includes('\n'))
    return [
      `${name}:`,
      ...plain(value)
        .trimEnd()
        .split('\n')
        .map(line => `  ${line}`),
    ]
  return [`${name}: ${textOf(name, value)}`]
}

/** The first 8 columns that contain plain values. */
const tableOf = (rows: readonly Row[], width: number | undefined): string[] => {
  const names = [
    ...new Set(
      rows.flatMap(row =>
        Object.entries(row)
          .filter(([, value]) => !isRow(value) && !isTable(value))
          .map(([name]) => name),
      ),
    ),
  ]
  const shown = names.slice(0, MOST_COLUMNS)
  return columns(
    [
      shown.map(name => hyphenated(name).toUpperCase()),
      ...rows.map(row => shown.map(name => short(textOf(name, row[name]), CELL))),
    ],
    width,
  )
}

const textOf = (name: string, value: unknown): string => {
  if (value === undefined || value === null) return ''
  if (typeof value === 'number' && TIME.test(name) && value > FIRST_TIME) return new Date(value).toISOString()
  if (Array.isArray(value)) return value.map(each => textOf('', each)).join(', ')
  return oneLine(typeof value === 'object' ? JSON.stringify(value) : String(value))
}
