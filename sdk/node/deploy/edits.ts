import { isDeepStrictEqual } from 'node:util'
import { withItem, withoutValue, withValue, type JsonPath } from './json-edits.js'
import { entriesIn, readDeployConfig, type DeployEntry } from './entries.js'
import { memberOf } from './json-text.js'

const EMPTY = '{\n  "inventory": []\n}\n'
const FIELDS = ['kind', 'provider', 'service', 'name', 'values', 'on', 'expose'] as const

/** An entry with its fields in the order in which they are written. */
const inOrder = (entry: DeployEntry): { [field: string]: unknown } => {
  const given: { [field: string]: unknown } = { ...entry }
  return Object.fromEntries(FIELDS.flatMap(field => (given[field] === undefined ? [] : [[field, given[field]]])))
}

/** Refuses to write a text in which something else than the change came about. */
const assertEdited = (text: string, expected: readonly DeployEntry[]): string => {
  const entries = entriesIn(text)
  if (!isDeepStrictEqual(entries, expected)) throw new Error('an edit of the configuration changed something else')
  return text
}

/**
 * Adds an entry to the text of the configuration, or changes what differs of the one with its name; all else stays as
 * it is written.
 *
 * @param before The text; undefined: there is no file.
 */
export const withEntry = (before: string | undefined, entry: DeployEntry): string => {
  const text = before === undefined || before.trim() === '' ? EMPTY : before
  const entries = entriesIn(text)
  const index = entries.findIndex(({ name }) => name === entry.name)
  const old = entries[index]
  if (isDeepStrictEqual(old, entry)) return text
  if (!old) {
    const whole = memberOf(readDeployConfig(text), 'inventory') ? text : withValue(text, ['inventory'], [])
    return assertEdited(withItem(whole, ['inventory'], inOrder(entry)), [...entries, entry])
  }
  const path = ['inventory', index] as const
  const [now, then] = [inOrder(old), inOrder(entry)]
  let edited = text
  const set = (at: JsonPath, value: unknown): void => {
    edited = withValue(edited, at, value)
  }
  for (const field of FIELDS) {
    const value = then[field]
    if (value === undefined && now[field] !== undefined) edited = withoutValue(edited, [...path, field])
    else if (field === 'values' && hasMember(edited, index, 'values')) {
      for (const key of Object.keys(old.values))
        if (!Object.hasOwn(entry.values, key)) edited = withoutValue(edited, [...path, 'values', key])
      for (const [key, each] of Object.entries(entry.values)) set([...path, 'values', key], each)
    } else if (value !== undefined && !isDeepStrictEqual(value, now[field])) set([...path, field], value)
  }
  return assertEdited(edited, entries.with(index, entry))
}

const hasMember = (text: string, index: number, key: string): boolean => {
  const item = memberOf(readDeployConfig(text), 'inventory')?.value.items?.[index]?.value
  return item !== undefined && memberOf(item, key) !== undefined
}

/** Takes an entry out of the text of the configuration; one that is not there changes nothing. */
export const withoutEntry = (text: string, name: string): string => {
  const entries = entriesIn(text)
  const index = entries.findIndex(entry => entry.name === name)
  if (index < 0) return text
  return assertEdited(withoutValue(text, ['inventory', index]), entries.toSpliced(index, 1))
}
