import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import t from 'tap'

/** The group whose code serves calls that another group publishes. */
const SERVED_BY: { readonly [group: string]: readonly string[] } = {
  agents: ['agents', 'agent'],
  workspace: ['workspace', 'git'],
}

/** Fields that code reads without their names, and by what. */
const BY_ANOTHER_WAY: { readonly [field: string]: string } = {
  'commandRules.*': 'safety looks the class of a command up',
  'actionRules.*': 'safety looks the action up',
}

interface Schema {
  readonly $ref?: string
  readonly properties?: { readonly [name: string]: Schema }
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly [kind: string]: unknown
}
interface Content {
  readonly content?: { readonly [type: string]: { readonly schema: Schema } }
}
interface Operation {
  readonly operationId?: string
  readonly parameters?: readonly { readonly name?: string; readonly in?: string }[]
  readonly requestBody?: Content
  readonly responses?: { readonly [status: string]: Content }
}
interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
  readonly components: { readonly schemas: { readonly [name: string]: Schema } }
}
const jsonOf = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as Document

const { schemas } = jsonOf('openapi/openapi.json').components

/** The paths of all fields of a type, each type once. */
const fieldsOf = (schema: unknown, path: readonly string[] = [], seen = new Set<string>()): (readonly string[])[] => {
  if (typeof schema !== 'object' || schema === null) return []
  const { $ref, properties = {}, items, additionalProperties, ...rest } = schema as Schema
  const name = $ref?.split('/').at(-1)
  if (name !== undefined) return seen.has(name) ? [] : fieldsOf(schemas[name], path, seen.add(name))
  return [
    ...Object.entries(properties).flatMap(([field, inner]) => [
      [...path, field],
      ...fieldsOf(inner, [...path, field], seen),
    ]),
    ...[
      items,
      additionalProperties,
      ...['oneOf', 'anyOf', 'allOf', 'prefixItems'].flatMap(kind => rest[kind] ?? []),
    ].flatMap(inner => fieldsOf(inner, path, seen)),
  ]
}

const jsonAnswer = (responses: Operation['responses'] = {}): Schema | undefined =>
  Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1].content?.['application/json']?.schema

const wordsOf = (files: readonly string[]): ReadonlySet<string> =>
  new Set(
    files.flatMap(
      file =>
        readFileSync(file, 'utf8')
          .replace(/\/\*[^]*?\*\/|\/\/[^\n]*/g, '')
          .match(/[A-Za-z_$][\w$]*/g) ?? [],
    ),
  )
const SAID_ONLY = /(?:^|\/)(?:contract|examples|cli)\.ts$/
/** What the code of a group names: neither its types nor its examples. */
const codeOf = (group: string): ReadonlySet<string> =>
  wordsOf(
    (SERVED_BY[group] ?? [group])
      .flatMap(name => globSync(`plugins/${name}/**/*.ts`))
      .filter(file => !SAID_ONLY.test(file)),
  )
/** What the pages and the command line name. */
const shownToPeople = wordsOf([...globSync('plugins/console/web/**/*.{ts,tsx}'), ...globSync('plugins/*/cli.ts')])

const everyCode = wordsOf(globSync('plugins/!(console)/**/*.ts').filter(file => !SAID_ONLY.test(file)))

t.test('every field that a call takes is read by its group, or kept and shown', t => {
  for (const file of globSync('openapi/groups/*.json').sort()) {
    const group = basename(file, '.json')
    const code = codeOf(group)
    const operations = Object.values(jsonOf(file).paths ?? {}).flatMap(methods => Object.values(methods))
    const answered = new Set(
      operations.flatMap(({ responses }) => fieldsOf(jsonAnswer(responses))).map(path => path.at(-1)!),
    )
    for (const { operationId, parameters = [], requestBody } of operations) {
      if (operationId === undefined) continue
      const isShown = (field: string) => answered.has(field) && shownToPeople.has(field)
      const unread = [
        ...parameters.flatMap(({ name = '', in: place }) => (place === 'header' || code.has(name) ? [] : [name])),
        ...fieldsOf(requestBody?.content?.['application/json']?.schema)
          .filter(path => {
            const field = path.at(-1)!
            // A part of what is handed on whole is read where it arrives.
            const isRead = path.length > 1 ? everyCode.has(field) : code.has(field)
            return !isRead && !isShown(field) && !(`${path.at(-2)}.*` in BY_ANOTHER_WAY)
          })
          .map(path => path.join('.')),
      ].filter(Boolean)
      t.same(unread, [], operationId)
    }
  }
  t.end()
})
