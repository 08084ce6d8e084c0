import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { CliColumns, CliVerb } from '../../../sdk/cli-table.js'
import { answerLines } from '../../../sdk/cli/calls/answer.js'
import { commandOf } from '../../../sdk/cli/calls/command.js'
import { didOf } from '../../../sdk/cli/calls/did.js'
import type { Schema } from '../../../sdk/cli/calls/document.js'
import { placedOf } from '../../../sdk/cli/calls/input.js'
import { type GroupCommand, bareOf, groupsOf } from '../../../sdk/cli/calls/tables.js'
import { VERBS } from '../../../sdk/cli/program.js'
import { wordsOf } from '../../../sdk/cli/verbs/completion.js'
import type { Verb } from '../../../sdk/cli/verb.js'
import { root } from '../../support/daemon.js'
import { json } from '../wire.js'
import { fakeDaemon } from './cli-process.js'
import { answerOf, formsOf, publishedCalls, publishedGroups } from './published.js'

const commands = publishedGroups.flatMap(each => each.commands)
const tables = new Map(publishedGroups.map(({ group, table }) => [group, table]))
const named = ({ name, operation }: GroupCommand): string => `${operation.group} ${name}`

/** Whether an answer of this schema can have the field. */
const has = (schema: Schema, path: string): boolean => {
  if (path === '') return true
  const [name = '', ...rest] = path.split('.')
  return formsOf(schema).some(form => {
    if (form.type === 'array')
      return name === 'length' || has(form.items ?? {}, /^\d+$/.test(name) ? rest.join('.') : path)
    const found = form.properties?.[name]
    if (found) return has(found, rest.join('.'))
    const open = (form as { readonly additionalProperties?: unknown }).additionalProperties
    return open !== undefined && open !== false
  })
}

const fieldsOf = (columns: CliColumns): string[] =>
  Object.values(columns).flatMap(column => (typeof column === 'object' && 'field' in column ? column.field : column))

const itemsOf = (schema: Schema, path: string): Schema[] => {
  if (path === '') return formsOf(schema).flatMap(form => form.items ?? [])
  const [name = '', ...rest] = path.split('.')
  return formsOf(schema).flatMap(form => {
    const next = form.type === 'array' ? form.items : form.properties?.[name]
    return next ? itemsOf(next, form.type === 'array' ? path : rest.join('.')) : []
  })
}

/** The entries of a list, or the objects of a field. */
const partsOf = (schema: Schema, path: string): Schema[] => {
  const [name = '', ...rest] = path.split('.')
  const parts = formsOf(schema).flatMap(form => (form.type === 'array' ? formsOf(form.items ?? {}) : form))
  if (path === '') return parts
  return parts.flatMap(part => (part.properties?.[name] ? partsOf(part.properties[name], rest.join('.')) : []))
}

/** Whether an answer of this schema has the field anywhere. */
const hasBelow = (schema: Schema, path: string, depth = 4): boolean =>
  has(schema, path)
  || (depth > 0
    && partsOf(schema, '').some(part =>
      Object.values(part.properties ?? {}).some(each => hasBelow(each, path, depth - 1)),
    ))

const placesOf = (text: string): string[] => [...text.matchAll(/\{([\w.]+)/g)].map(([, path]) => path!)

t.test('every group of the program has a table, and each table belongs to a group', t => {
  t.same(groupsOf({ root }), [...tables.keys()].filter(group => group !== 'kernel' && group !== 'console').sort())
  t.end()
})

t.test('what a table names is there', t => {
  for (const { group, table, calls } of publishedGroups) {
    if (!table) continue
    t.ok(Object.hasOwn(table.verbs, table.bare), `${group}: the bare group does ${table.bare}`)
    for (const call of table.hidden ?? [])
      t.ok(
        calls.some(each => each.call === call),
        `${group}: ${call}`,
      )
    for (const [name, verb] of Object.entries<CliVerb>(table.verbs)) {
      const operation = calls.find(each => each.call === verb.call)
      if (!operation) {
        t.fail(`${group} ${name}: no call ${verb.call}`)
        continue
      }
      const label = `${group} ${name}`
      const fields = operation.fields.map(field => field.name)
      for (const field of [...(verb.args ?? []), ...Object.keys(verb.flags ?? {}), ...Object.keys(verb.ids ?? {})])
        t.ok(fields.includes(field), `${label}: ${field} is a field`)
      for (const list of Object.values(verb.ids ?? {}))
        t.ok(Object.hasOwn(table.verbs, list), `${label}: lists ${list}`)
      const schema = answerOf(operation)?.schema
      if (!schema) continue
      if (verb.rows !== undefined) {
        const items = [verb.rows].flat().flatMap(rows => {
          const found = itemsOf(schema, rows)
          t.ok(found.length > 0, `${label}: ${rows} is a list`)
          return found
        })
        for (const field of [...fieldsOf(verb.columns ?? {}), ...Object.keys(verb.without ?? {})])
          t.ok(
            items.some(item => has(item, field)),
            `${label}: ${field} is a field of ${[verb.rows].flat().join(' or ')}`,
          )
      }
      const given = (path: string) => path === 'sandbox' || fields.includes(path)
      for (const { rows, if: needed, text } of [...(verb.above ?? []), ...(verb.below ?? [])]) {
        const entries = partsOf(schema, rows)
        for (const path of [...(needed === undefined ? [] : [needed]), ...placesOf(text)])
          t.ok(
            given(path) || (path.startsWith('of.') ? rows !== '' : entries.some(entry => has(entry, path))),
            `${label}: ${path} is a field of ${rows || 'the answer'}`,
          )
      }
      for (const [field, text] of Object.values(verb.columns ?? {}).flatMap(column =>
        typeof column === 'object' && 'text' in column ? Object.entries(column.text ?? {}) : [],
      ))
        for (const path of placesOf(text))
          t.ok(given(path) || hasBelow(schema, path), `${label}: ${path} beside ${field}`)
      for (const field of fieldsOf({ ...(verb.rows === undefined && verb.columns), ...verb.more }))
        t.ok(has(schema, field), `${label}: ${field} is a field of the answer`)
      for (const [title, { rows, columns }] of Object.entries(verb.lists ?? {})) {
        const items = itemsOf(schema, rows)
        t.ok(items.length > 0, `${label}: ${title} is a list`)
        for (const field of fieldsOf(columns))
          t.ok(
            items.some(item => has(item, field)),
            `${label}: ${field} is a field of ${rows}`,
          )
      }
    }
  }
  t.end()
})

/** The texts of a table with places. */
const sentencesOf = (verb: CliVerb): string[] => [
  verb.done ?? '',
  verb.none ?? '',
  ...Object.values(verb.events ?? {}),
  ...[...(verb.above ?? []), ...(verb.below ?? [])].map(({ text }) => text),
  ...[verb.columns, ...Object.values(verb.lists ?? {}).map(({ columns }) => columns)].flatMap(cells =>
    Object.values(cells ?? {}).flatMap(cell =>
      typeof cell === 'object' && 'field' in cell ? Object.values({ ...cell.text, ...cell.words }) : [],
    ),
  ),
]

t.test('no choice of a sentence has a place in it, except for the command itself', t => {
  for (const command of commands)
    for (const text of command.verb ? sentencesOf(command.verb) : [])
      t.notMatch(text.replaceAll('{sandbox}', ''), /\{[\w.]+\?[^}]*\{/, `${named(command)}: ${text}`)
  t.end()
})

t.test('no verb takes more than two arguments by place', t => {
  for (const command of commands)
    t.ok(placedOf(command.operation.fields, command.verb).length <= 2, `${named(command)}: ${commandOf(command).usage}`)
  t.end()
})

t.test('a bare group lists: what it does needs no argument', t => {
  for (const { group, table, commands: own } of publishedGroups) {
    // A written verb has the name of the group.
    if (!table || VERBS.some(({ name, also }) => name === group || also === group)) continue
    const bare = bareOf(own, table)!
    t.ok(bare.operation.call.startsWith('GET '), `${group}: ${bare.operation.call} changes nothing`)
    const filled = bare.verb?.fill?.({}) ?? {}
    t.same(
      bare.operation.fields.filter(({ name, required }) => required && !(name in filled)),
      [],
      group,
    )
  }
  t.end()
})

const LISTED = /^(?:GET|POST) /

t.test('every list has columns and says when it is empty', t => {
  for (const { operation, verb, name } of commands)
    if (verb?.rows !== undefined && LISTED.test(operation.call)) {
      t.ok(verb.columns, `${operation.group} ${name} has columns`)
      t.ok(verb.none, `${operation.group} ${name} says that there is nothing`)
    }
  t.end()
})

t.test('a call that only says ok has a sentence of what was done', t => {
  for (const command of commands) {
    const schema = answerOf(command.operation)?.schema
    if (command.hidden || !schema?.$ref?.endsWith('/Ok') || !tables.get(command.operation.group)) continue
    t.ok(command.verb?.done, `${named(command)} (${command.operation.call})`)
  }
  t.end()
})

t.test('approvals are shown word for word, with the command that says yes to exactly that', t => {
  const { verb } = commands.find(command => named(command) === 'approvals list')!
  const digest = 'b'.repeat(64)
  const item = {
    ...{ id: 'a-1', status: 'proposed', kind: 'post', digest, proposedBy: 'conversation:c-1', via: 'executor' },
    post: { platform: 'webhook', target: 'https://hooks.example.org/news', content: 'Version 2\n\n  is out.' },
    ...{ createdAt: Date.now(), updatedAt: Date.now(), ownerOnly: false, attempts: [] },
  }
  const text = answerLines(
    { approvals: [item, { ...item, id: 'a-2', status: 'done' }], counts: {} },
    { ...(verb && { verb }), now: Date.now(), self: 'sandbox', did: '' },
  ).join('\n')
  t.match(text, 'state     waits for you\n')
  t.match(text, 'content\n  Version 2\n  \n    is out.\n')
  t.match(text, `say yes   sandbox approvals approve a-1 ${digest}\n`)
  t.notMatch(text, `approve a-2`)
  t.end()
})

const textsOf = (value: unknown): string[] => {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}

/** What no person should have to read. */
const UNREADABLE: readonly RegExp[] = [/\b1[6-9]\d{11}\b/, /^ok: true$/m, /\[object /, /\bundefined\b/, /[{[]"/]

t.test('answers are for people: no milliseconds, no JSON, no bare ok', t => {
  for (const command of commands) {
    const { operation, verb } = command
    const example = answerOf(operation)?.example
    if (example === undefined || !verb) continue
    const input = Object.fromEntries(operation.fields.map(field => [field.name, field.name.toUpperCase()]))
    const text = answerLines(example, {
      ...{ verb, input, now: Date.now(), self: 'sandbox', did: didOf(command.name, []) },
    }).join('\n')
    t.ok(text.trim(), `${named(command)} says something`)
    // What somebody wrote is shown as it is.
    const raw = textsOf(example)
    for (const pattern of UNREADABLE)
      if (!raw.some(each => pattern.test(each))) t.notMatch(text, pattern, `${named(command)}:\n${text}`)
  }
  t.end()
})

t.test('the list of approvals shows all that would be sent and the whole digest, however wide the terminal', t => {
  const verb = tables.get('approvals')!.verbs.list!
  const content = `${'some words of a post '.repeat(200)}end`
  const digest = 'abcdef01'.repeat(8)
  const approvals = [
    {
      id: 'a-1',
      status: 'proposed',
      kind: 'post',
      post: { platform: 'webhook', target: 'https://x.example', content },
    },
    {
      id: 'a-2',
      status: 'proposed',
      kind: 'action',
      action: { key: 'mail.send', summary: 'a mail', args: { to: content } },
    },
  ].map(each => ({ ...each, digest, proposedBy: 'ann', createdAt: 1 }))
  for (const width of [undefined, 200, 60]) {
    const lines = answerLines({ approvals }, { verb, input: {}, now: 1, self: 'sandbox', did: '', width })
    const text = lines.join(' ').replaceAll(/\s+/g, ' ')
    t.equal(text.split(content).length, 3, `${width}`)
    t.equal(text.split(digest).length, 3, `${width}`)
    t.match(text, /https:\/\/x\.example.*mail\.send/, `${width}`)
  }
  t.end()
})

// Written verbs ------------------------------------------------------------------------------------------------------

const SHOWN = VERBS.filter(({ hidden }) => !hidden)

t.test('no written verb builds columns of its own', t => {
  const folder = join(root, '..', 'sdk', 'cli', 'verbs')
  const files = globSync('**/*.ts', { cwd: folder })
  t.ok(files.length > 30)
  for (const file of files) t.notMatch(readFileSync(join(folder, file), 'utf8'), /\bcolumns\(/, file)
  t.end()
})

/** The arguments of each form of a usage, without the word of the form and its options. */
const argumentsOf = ({ usage }: Verb): string[][] =>
  usage
    .replaceAll(/'[^']*'/g, 'CALL')
    .split(' | ')
    .map(form =>
      form
        .replaceAll(/--[a-z-]+(?: [A-Z][A-Z|a-z]*)?/g, '')
        .replaceAll(/HOST\[:PORT\]/g, 'HOST')
        .split(/[\s[\]]+/)
        .filter(word => word !== '' && !/^[a-z|-]+$/.test(word)),
    )

t.test('no written verb takes more than two arguments behind its word, and each has an example', t => {
  for (const verb of SHOWN) {
    for (const form of argumentsOf(verb)) t.ok(form.length <= 2, `${verb.name}: ${form.join(' ')}`)
    if (!verb.usage.includes('…') && verb.most !== Infinity)
      t.ok((verb.most ?? 0) <= 3, `${verb.name}: at most its word and two arguments`)
    for (const example of verb.examples)
      t.ok(example === verb.name || example.startsWith(`${verb.name} `), `${verb.name}: ${example}`)
  }
  t.end()
})

/** What shows an answer as something else than a list: with the reason. */
const NO_LISTS: { readonly [verb: string]: string } = {
  transcript: 'it tells what was said',
  diff: 'it is a patch',
  network: 'it is sentences about settings',
  'extension review': 'it is what one extension may do',
  'extension approve': 'it does something',
}
/** Verbs that draw something above their list. */
const DRAWN: readonly string[] = ['machine']

/** What a written verb adds before the columns of the table. */
const BEFORE: { readonly [verb: string]: CliColumns } = {
  account: { provider: { field: 'provider', optional: true } },
}

/** The answer of a published call that reads, by its path. */
const answers = publishedCalls
  .filter(({ call }) => call.startsWith('GET '))
  .map(operation => {
    const path = operation.call.slice(4)
    const fields = [...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field!)
    return { operation, fields, path: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '([^/]+)')}$`) }
  })
  .sort((one, other) => one.fields.length - other.fields.length)

const withAccounts = (example: unknown): unknown => {
  const { providers } = example as { readonly providers: readonly object[] }
  return { providers: providers.map(provider => ({ ...provider, accounts: 1 })) }
}

const answerAt = (path: string) => {
  const found = answers.find(each => each.path.test(path))
  const example = found && answerOf(found.operation)?.example
  if (!found || example === undefined) return undefined
  const parts = found.path.exec(path)!.slice(1)
  const input = Object.fromEntries(found.fields.map((field, at) => [field, parts[at]]))
  return { example: path === '/providers' ? withAccounts(example) : example, input, call: found.operation.call }
}

const wordsIn = (example: string): string[] =>
  [...example.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!)

/** Gives what was printed as JSON the form of the answer: some verbs rename its list, or print its entries. */
const asAnswer = (printed: readonly unknown[], { rows }: CliVerb): unknown => {
  const [first] = printed as readonly { readonly [field: string]: unknown }[]
  const field = typeof rows === 'string' ? rows : rows?.[0]
  if (!field || first === undefined || Object.hasOwn(first, field)) return first
  const lists = Object.values(first).filter(Array.isArray)
  return { [field]: lists.length === 1 ? lists[0] : printed.toReversed() }
}

t.test('what a written verb lists is what the verb of the group prints', async t => {
  const daemon = await fakeDaemon(
    t,
    ({ method, path }, response) =>
      (method === 'GET' ? answerAt(path)?.example : undefined)
      ?? json(response, 403, { reason: 'forbidden', message: 'only reading' }),
  )
  const compared = new Set<string>()
  for (const verb of SHOWN.filter(({ flags }) => 'url' in flags && 'json' in flags)) {
    if (wordsOf(verb).includes('list')) {
      const [bare, listed] = await Promise.all([daemon.run([verb.name]), daemon.run([verb.name, 'list'])])
      t.same([bare.code, bare.out], [0, listed.out], `${verb.name} alone lists`)
    }
    const forms = [...(verb.least ? [] : [verb.name]), ...verb.examples].filter(form => !/[<>]|--json/.test(form))
    for (const form of new Set(forms)) {
      const before = daemon.calls().length
      const run = (...more: string[]) => daemon.run([...wordsIn(form), ...more], { cwd: daemon.workspace })
      const { code, out } = await run()
      const calls = daemon.calls().slice(before)
      if (code !== 0 || calls.length === 0 || calls.some(({ method }) => method !== 'GET')) continue
      if (Object.keys(NO_LISTS).some(name => form === name || form.startsWith(`${name} `))) continue
      const printed = (await run('--json')).out
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line) as unknown)
      const shown = calls.flatMap(({ path }) => {
        const { call, input } = answerAt(path)!
        return commands.flatMap(({ operation, verb: known }) => {
          if (operation.call !== call || !known) return []
          const withMore = { ...known, columns: { ...BEFORE[verb.name], ...known.columns } }
          return answerLines(asAnswer(printed, known), {
            ...{ verb: withMore, input, now: Date.now(), self: 'sandbox', did: '' },
          }).join('\n')
        })
      })
      const list = DRAWN.includes(verb.name) ? out.split('\n\n').at(-1)!.trimEnd() : undefined
      const same = list === undefined ? shown.includes(out.trimEnd()) : shown.some(text => text.endsWith(`\n${list}`))
      t.ok(same, `${form}:\n${out}is none of\n${shown.join('\n')}`)
      compared.add(form)
    }
  }
  t.comment([...compared].join(', '))
  t.ok(compared.size >= 20, [...compared].join(', '))
})
