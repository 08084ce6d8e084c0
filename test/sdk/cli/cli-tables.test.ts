import t from 'tap'
import type { CliColumns, CliVerb } from '../../../sdk/cli-table.js'
import { answerLines } from '../../../sdk/cli/calls/answer.js'
import { commandOf } from '../../../sdk/cli/calls/command.js'
import { didOf } from '../../../sdk/cli/calls/did.js'
import type { Schema } from '../../../sdk/cli/calls/document.js'
import { placedOf } from '../../../sdk/cli/calls/input.js'
import { type GroupCommand, bareOf, groupsOf } from '../../../sdk/cli/calls/tables.js'
import { VERBS } from '../../../sdk/cli/program.js'
import { root } from '../../support/daemon.js'
import { answerOf, formsOf, publishedGroups } from './published.js'

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
