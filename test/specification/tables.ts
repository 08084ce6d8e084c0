import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { fieldsOf, type Field } from './fields.js'

export type Row = readonly string[]

/** One call as the specification shows it. */
export interface ShownCall {
  readonly call: string
  /** The section it stands in. */
  readonly section: string
  readonly stream: boolean
  readonly input: readonly Field[]
  readonly answer: readonly Field[]
}

/** What the tables and lists of the specification hold. */
export interface Tables {
  readonly groups: readonly Row[]
  readonly calls: readonly ShownCall[]
  readonly records: { readonly [name: string]: readonly Field[] }
  readonly states: readonly { readonly resource: string; readonly states: readonly string[]; readonly more: number }[]
  readonly transitions: readonly Row[]
  readonly scopes: readonly Row[]
  readonly events: readonly Row[]
  readonly cards: readonly string[]
  readonly moments: readonly string[]
  /** Enumerations of which the text gives a part. */
  readonly partly: readonly Field[]
  readonly errors: readonly Row[]
  readonly limits: readonly Row[]
}

/** What was copied from the specification. */
export const tablesFile = fileURLToPath(new URL('../../../test/fixtures/specification.json', import.meta.url))

export const readTables = (): Tables => JSON.parse(readFileSync(tablesFile, 'utf8')) as Tables

interface Section {
  readonly title: string
  readonly tables: Row[][]
  readonly lines: string[]
}

const CALL = /^(?:GET|POST|PUT|PATCH|DELETE) \/\S*$/

/** The sections of a text, each with the rows of its tables (without their heads) and its other lines. */
const sectionsOf = (text: string): Section[] => {
  const sections: Section[] = [{ title: '', tables: [], lines: [] }]
  let isInTable = false
  for (const line of text.split('\n')) {
    const [, heading] = /^#+ (.*)/.exec(line) ?? []
    const [, call, rest] = /^\*\*`(\w+ \/[^`]*)`\*\*(.*)/.exec(line) ?? []
    const title = heading ?? (call !== undefined && CALL.test(call) ? call : undefined)
    if (title !== undefined) sections.push({ title, tables: [], lines: rest === undefined ? [] : [rest] })
    const { tables, lines } = sections.at(-1)!
    if (!line.startsWith('|')) {
      isInTable = false
      if (title === undefined && line.trim()) lines.push(line)
    } else {
      if (!isInTable) tables.push([])
      isInTable = true
      tables.at(-1)!.push(
        line
          .split('|')
          .slice(1, -1)
          .map(cell => cell.trim()),
      )
    }
  }
  return sections.map(({ title, tables, lines }) => ({ title, tables: tables.map(rows => rows.slice(2)), lines }))
}

const plain = (row: Row): string[] => row.map(cell => cell.replaceAll('`', ''))
const namesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
const NUMBERS: { readonly [word: string]: number } = { one: 1, two: 2, three: 3, five: 5, seven: 7, twelve: 12 }

/** Records by the titles of their sections, or by the words with which the text refers to them. */
const RECORDS: { readonly [title: string]: string } = {
  'Control token': 'control token',
  Persona: 'persona',
  'Settings object': 'settings',
  'Extension record (as listed)': 'extension record',
  'Secret inventory entry': 'secret inventory entry',
  'Port entry': 'port entry',
  'Exit link': 'exit link',
  'Provider account row': 'provider account row',
  'Free trial status': 'trial status',
  'Workspace entry': 'workspace entry',
  'Derived text': 'derived text',
}

/** The words of an answer that is a record as a whole. */
const WHOLE: readonly (readonly [RegExp, string])[] = [
  [/settings object/, 'settings'],
  [/trial status/, 'trial status'],
  [/account row/, 'provider account row'],
  [/^derived text/, 'derived text'],
]

const answerOf = (text: string): readonly Field[] => {
  const [, record] = text.includes('{') ? [] : (WHOLE.find(([words]) => words.test(text)) ?? [])
  return record === undefined ? fieldsOf(text) : [{ path: '', of: record }]
}

/** The fields of a cell that says where each of its parts travels: `path `id`; body `port` integer (req)`. */
const inputOf = (cell: string): readonly Field[] => {
  if (cell === 'none') return []
  if (cell.startsWith('whole persona card')) return [{ path: '', of: 'persona', in: 'body' }]
  const tagged = /^body tagged by `(\w+)`: (.*)/.exec(cell)
  if (tagged)
    return tagged[2]!.split('; ').flatMap((one): Field[] => {
      const [, kind = '', fields = ''] = /^`(\w+)` with (.*)/.exec(one)!
      return fieldsOf(fields.replace(/` and `|\) and `/g, found => found.replace(' and ', ', '))).map(field => ({
        ...field,
        in: 'body',
        kind,
        ...((/all req/.test(fields) || field.path.includes('.')) && { required: true }),
      }))
    })
  return cell.split(/; (?=path|query|body)/).flatMap((part): Field[] => {
    const [, place = '', fields = ''] = /^(path|query|body):? (.*)/.exec(part) ?? []
    if (/complete settings object/.test(fields)) return [{ path: '', of: 'settings', in: 'body' }]
    const all = /\((?:both|all) req\)/.test(fields)
    return fieldsOf(fields.replace(/strings? `YYYY-MM-DD`/, 'string')).map(field => ({
      ...field,
      in: place as 'path',
      ...((all || place === 'path') && { required: true }),
    }))
  })
}

/** Lists that stand in a sentence, as they would stand in parentheses. */
const inParentheses = (text: string): string =>
  text
    .replace(/^`\{kind: local\}` or `\{kind: runner, .*\}`/, '`kind` (`local` / `runner`) (req), `id` string')
    .replace(/items of `\{(\w+): (\w+), (\w+): (\w+) \(min 1\)\}`/, 'items of `$1` $2 (req), `$3` $4 (req)')
    .replace(
      /: array of notes to leave out; values include (.*?) \((\w+) values exist\)/,
      ' string[] ($1 and more; $2 exist)',
    )
    .replace(/one of ((?:`[\w.-]+`(?:, )?)+)/, (_, list: string) => `(${list.replaceAll(', ', ' / ')})`)
    .replace(/object with (.*?);/, 'object ($1);')
    .replace('array of ', 'string[] ')
    .replace('(objects ', 'object[] (')
    .replace('(workspace extensions awaiting approval: ', 'object[] (')
    .replaceAll(') and `', '), `')
    .replace('. When none exists: ', ', ')
    .replace(/`engines` \(.*?\)\)?,/, '`engines`,')
    .replace(' and `daemon` string[] of entries shaped like `GET /path`', ', `daemon` string[]')

/** The fields of a table with one row a field. */
const rowsAsFields = (rows: readonly Row[], place?: 'body'): readonly Field[] =>
  rows.flatMap(([name = '', type = '', ...rest]) => {
    const required = rest.length > 1 ? rest[0] === 'yes' : /^required on write/.test(rest[0] ?? '')
    const notes = inParentheses(rest.at(-1) ?? '')
    const [field = { path: name.replaceAll('`', '') }] = fieldsOf(`${name} ${type}`)
    const [, choice = ''] = /^\((`.*?`)\)|^((?:`\w+`(?:, )?)+)$/.exec(notes)?.filter(Boolean) ?? []
    const own: Field = {
      ...field,
      ...(required && { required: true }),
      ...(choice && { values: namesIn(choice) }),
    }
    const [, most = '', verdicts = '', last = '', fewer = ''] =
      /^for each of (.*): (.*); for (.*): (.*)$/.exec(notes) ?? []
    const isMap = !/^object/.test(type) || /^map |^see |^set by the owner/.test(notes) || !notes.includes('`')
    const below = most
      ? [
          ...namesIn(most).map((path): Field => ({ path, values: namesIn(verdicts) })),
          ...namesIn(last).map((path): Field => ({ path, values: namesIn(fewer) })),
        ]
      : isMap
        ? []
        : fieldsOf(notes.slice(notes.indexOf('`')))
    const at = `${field.path}${type.includes('[]') ? '[]' : ''}`
    return [own, ...below.map(one => ({ ...one, path: `${at}.${one.path}` }))].map(one => ({
      ...one,
      ...(place && { in: place }),
    }))
  })

/** What a rule does, by kind. */
const actionsOf = (rule: string): readonly Field[] =>
  rule
    .slice(rule.indexOf('by `kind`: ') + 11, rule.indexOf('; `enabled`'))
    .split(/, (?=`\w+` \()/)
    .flatMap(one => {
      const [kind = ''] = namesIn(one)
      return fieldsOf(one.slice(one.indexOf('(') + 1).replace(' `verify-edits`', ' (`verify-edits` / )')).map(
        field => ({
          ...field,
          path: `action.${field.path}`,
          kind,
        }),
      )
    })

/** The tables of the specification's text. */
export const tablesOf = (text: string): Tables => {
  const sections = sectionsOf(text)
  const section = (title: string): Section => {
    const found = sections.find(one => one.title === title)
    if (!found) throw new Error(`expected a section ${title}`)
    return found
  }
  const [states = [], transitions = []] = section('States and transitions').tables
  const calls = sections.flatMap(({ title, tables, lines }): ShownCall[] => {
    if (!CALL.test(title))
      return tables
        .flat()
        .filter(([call = '']) => CALL.test(namesIn(call)[0] ?? ''))
        .filter(row => row.length === 3 && row[1] !== '')
        .filter(() => !['States and transitions', 'Errors', 'Limits'].includes(title))
        .map(([call = '', input = '', answer = '']) => ({
          call: namesIn(call)[0]!,
          section: title,
          stream: call.includes('(stream)'),
          input: inputOf(input),
          answer: /^events/.test(answer) ? [] : answerOf(answer),
        }))
    const words = lines.join(' ')
    const [body = '', answer = ''] = words.split(/[Rr]esponse:? /)
    const asked = /(?:Body|Query|Path):? (.*?)(?:\. |$)/.exec(body.replace(/\. $/, ''))
    const place = /Query/.test(body) ? 'query' : /Path/.test(body) ? 'path' : 'body'
    const rows = tables[0] ?? []
    const isTagged = /tagged by `kind`/.test(body)
    const input = isTagged
      ? rows.flatMap(([kind = '', fields = '']) =>
          fieldsOf(fields).map(field => ({ ...field, in: 'body' as const, kind: kind.replaceAll('`', '') })),
        )
      : rows.length > 0
        ? rowsAsFields(rows, 'body')
        : asked && !/not shown/.test(asked[1]!)
          ? fieldsOf(asked[1]!).map(field => ({
              ...field,
              in: place as 'body',
              // Where one field is said to be optional the others are required.
              ...(/\}`? \(req\)|, optional\)/.test(asked[1]!)
                && field.path !== 'expiresAt' && { required: true as const }),
            }))
          : []
    const [shown = ''] = answer.split(/\. (?=[A-Z])/)
    return [
      {
        call: title,
        section: 'Calls',
        stream: /^ \(stream\)/.test(words),
        input,
        answer: answerOf(isTagged ? (/response `([^`]*)`/.exec(body + answer)?.[1] ?? shown) : shown),
      },
    ]
  })
  const records = Object.fromEntries(
    Object.entries(RECORDS).map(([title, name]) => {
      const { tables, lines } = section(title)
      const [first = ''] = lines
      return [name, tables.length > 0 ? rowsAsFields(tables[0]!) : fieldsOf(inParentheses(first))]
    }),
  )
  const powers = section('Persona').lines.find(line => line.startsWith('`powers`'))!
  const rule = section('Settings object').lines.find(line => line.startsWith('Rule:'))!
  const listed = section('Extension record (as listed)').lines.find(line => line.startsWith('The list response'))!
  const manifest = section('Extension record (as listed)').lines.find(line => line.startsWith('Manifest'))!
  const cards = section('Events').lines.find(line => line.startsWith('**Parked cards**'))!
  const [partly = ''] = section('Partial enumerations').lines
  const moments = section('Events').lines.find(line => line.startsWith('**Rule moments**'))!
  return {
    groups: sections.find(({ tables }) => tables[0]?.[0]?.[0] === 'One agent')!.tables[0]!.map(plain),
    calls,
    records: {
      ...records,
      powers: fieldsOf(powers.replace(/^`powers`: /, '')),
      rule: [
        ...fieldsOf(inParentheses(rule.replace(/ a tagged object by `kind`: .*?;(?= `enabled`)/, ' object;'))),
        ...actionsOf(rule),
      ],
      'extension list': fieldsOf(inParentheses(listed)),
      manifest: fieldsOf(inParentheses(manifest.slice(manifest.indexOf('`$schema`')))),
    },
    states: states.map(([resource = '', cell = '']) => ({
      resource,
      states: cell.includes('`') ? namesIn(cell) : cell.split(', '),
      more: NUMBERS[/\((\w+) more\)/.exec(cell)?.[1] ?? ''] ?? 0,
    })),
    transitions: transitions.map(plain),
    scopes: section('Authentication').tables[0]!.map(plain),
    events: section('Events').tables[0]!.map(plain),
    cards: namesIn(cards.split(': ')[1]!),
    moments: namesIn(moments),
    partly: [...partly.matchAll(/`(\w+)` \((\w+) values, (.*?) given\)/g)].map(
      ([, path = '', inAll = '', given = '']) => ({
        path,
        values: namesIn(given),
        inAll: NUMBERS[inAll]!,
      }),
    ),
    errors: section('Errors').tables[0]!.map(plain),
    limits: section('Limits').tables[0]!.map(plain),
  }
}

/** JSON with one line an entry, so that a change of one shows as one. */
const linesOf = (tables: Tables): string => {
  const list = (items: readonly unknown[]) => `[\n${items.map(item => `    ${JSON.stringify(item)}`).join(',\n')}\n  ]`
  const entries = Object.entries(tables).map(([name, value]: [string, unknown]) =>
    Array.isArray(value)
      ? `  ${JSON.stringify(name)}: ${list(value)}`
      : `  ${JSON.stringify(name)}: {\n${Object.entries(value as object)
          .map(([key, items]) => `    ${JSON.stringify(key)}: ${JSON.stringify(items)}`)
          .join(',\n')}\n  }`,
  )
  return `{\n${entries.join(',\n')}\n}\n`
}

const [, program, text] = process.argv
if (program === fileURLToPath(import.meta.url) && text !== undefined)
  writeFileSync(tablesFile, linesOf(tablesOf(readFileSync(text, 'utf8'))))
