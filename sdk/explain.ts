import type { Contract, Shape } from './contract.js'
import type { FieldError } from './refusal.js'

interface Found {
  path: string
  expected: string
  value?: unknown
}

const WORDS: { readonly [tag: string]: (argument: string) => string } = {
  Type: type => (type.startsWith('u') ? 'whole, from 0' : type.startsWith('int') ? 'whole' : ''),
  Minimum: least => `from ${least}`,
  Maximum: most => `up to ${most}`,
  MinLength: least => (least === '1' ? 'not empty' : `at least ${least} characters`),
  MaxLength: most => `at most ${most} characters`,
  MostCharacters: most => `at most ${most} characters`,
  MinItems: least => `at least ${least} items`,
  MaxItems: most => `at most ${most} items`,
  WellFormed: () => 'well-formed Unicode',
  Pattern: pattern => `of the form ${pattern.replaceAll('\\\\', '\\')}`,
}

/** A tag of typia in an expectation, with its argument. */
const TAG = new RegExp(String.raw`(${Object.keys(WORDS).join('|')})(?:<(?:"((?:[^"\\]|\\.)*)"|([^>]*))>|\b)`, 'g')

/** The errors of a call's input, and the first one as a sentence: where, what was expected, what was found. */
export const explainInput = (
  found: readonly Found[],
  contract: Pick<Contract, 'schema'>,
): { message: string; errors: FieldError[] } => {
  const exact = pinpoint(found, contract)
  const errors = explain(exact, '$input.input')
  const [first] = errors
  return { message: first ? sentenceOf(first, exact[0]) : 'expected another input', errors }
}

/** typia's errors in readable form: paths below `root`, expectations in words, values only if short and plain. */
export const explain = (found: readonly Found[], root: string): FieldError[] =>
  found.map(finding => ({
    path: finding.path
      .replace(root, '')
      .replace(/^\./, '')
      .replace(/\["([^"]*)"\]/g, '.$1')
      .replace(/^\./, ''),
    expected: inWords(finding.expected),
    ...(!isHidden(finding) && { value: shown(finding.value) }),
  }))

/**
 * Moves an error about a union to the field that distinguishes its members: `kind: expected one of plan, question` is
 * clearer than `expected an object`.
 */
const pinpoint = (found: readonly Found[], contract: Pick<Contract, 'schema'>): readonly Found[] =>
  found.map(finding => {
    const { path, expected, value } = finding
    const names = /^\((\w+(?: \| \w+)+)\)$/.exec(expected)?.[1]?.split(' | ')
    if (!names || typeof value !== 'object' || value === null || Array.isArray(value)) return finding
    const { schemas = {} } = contract.schema().components
    const field = Object.keys(schemas[names[0]!]?.properties ?? {}).find(name =>
      names.every(member => wordsOf(schemas[member]?.properties?.[name]).length > 0),
    )
    if (field === undefined) return finding
    const words = new Set(names.flatMap(member => wordsOf(schemas[member]?.properties?.[field])))
    return {
      path: `${path}.${field}`,
      expected: [...words]
        .sort()
        .map(word => `"${word}"`)
        .join(' | '),
      value: (value as { [name: string]: unknown })[field],
    }
  })

/** The literal strings that a field accepts; empty for a field that accepts other values. */
const wordsOf = (shape: Shape = {}): string[] =>
  typeof shape.const === 'string'
    ? [shape.const]
    : shape.oneOf?.every(({ const: word }) => typeof word === 'string')
      ? shape.oneOf.flatMap(wordsOf)
      : []

/** The tag of values that messages never repeat (OpenAPI's format `password`). */
const PASSWORD = 'Format<"password">'
const isHidden = ({ expected, value }: Found): boolean => expected.includes(PASSWORD) && value !== undefined

const sentenceOf = ({ path, expected }: FieldError, finding: Found | undefined): string => {
  const found = finding && isHidden(finding) ? 'another value' : valueInWords(finding?.value)
  return `${path || 'input'}: expected ${expected}, found ${found}`
}

/** What was found, for a sentence: texts quoted, at most their first 80 characters, lists by their number of items. */
export const valueInWords = (value: unknown): string => {
  if (value === undefined) return 'nothing'
  if (value === '') return 'empty text'
  if (typeof value !== 'string') return shown(value)
  return value.length > 80
    ? `${JSON.stringify(value.slice(0, 80))} of ${value.length} characters`
    : JSON.stringify(value)
}

const shown = (value: unknown): string =>
  Array.isArray(value)
    ? `a list of ${value.length} ${value.length === 1 ? 'item' : 'items'}`
    : typeof value === 'object' && value !== null
      ? 'an object'
      : String(value).slice(0, 80)

const inWords = (expected: string): string => {
  const limits = [...expected.matchAll(TAG)]
    .map(([, tag, quoted, plain]) => WORDS[tag!]!(quoted ?? plain ?? ''))
    .filter(Boolean)
  const bare = expected
    .replace(/\((.*)\)/s, '$1')
    .replace(/ & (?:[A-Za-z]+<(?:"(?:[^"\\]|\\.)*"|[^>]*)>|WellFormed\b)/g, '')
    .replaceAll(' | undefined', '')
  const options = bare.split(' | ').map(option => option.replace(/^\((\w+)\)$/, '$1'))
  const literals = options.filter(option => option.startsWith('"')).map(option => option.slice(1, -1))
  const kinds = options
    .filter(option => !option.startsWith('"'))
    .map(kind => KINDS[kind] ?? (/^\(*Array</.test(kind) ? 'a list' : /^__type|^[A-Z]/.test(kind) ? 'an object' : kind))
  const base = [
    ...(literals.length ? [`${literals.length > 1 ? 'one of ' : ''}${literals.join(', ')}`] : []),
    ...new Set(kinds),
  ].join(' or ')
  return [base, ...new Set(limits)].join(', ')
}

const KINDS: { readonly [kind: string]: string } = {
  string: 'text',
  number: 'a number',
  boolean: 'true or false',
  undefined: 'nothing',
  null: 'null',
}
