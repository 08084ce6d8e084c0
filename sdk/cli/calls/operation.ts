import type { DocumentOperation, OpenApiDocument, Schema } from './document.js'

/** How the text of a field is parsed. */
export type FieldKind = 'text' | 'number' | 'time' | 'switch' | 'json'

/** One field of a call's input. */
export interface Field {
  readonly name: string
  readonly kind: FieldKind
  /** Whether it takes several values. */
  readonly many: boolean
  readonly required: boolean
  /** Whether it is a path parameter. */
  readonly inPath: boolean
  readonly choices?: readonly string[]
  readonly help: string
}

/** A call of the document as a command: `sandbox GROUP NAME`. */
export interface Operation {
  readonly group: string
  /** In lower case, with hyphens. */
  readonly name: string
  /** Method and path. */
  readonly call: string
  readonly summary: string
  readonly description: string
  readonly fields: readonly Field[]
  /** Whether its body is a file. */
  readonly takesBytes: boolean
}

/** Converts a name such as `autoLand` to `auto-land`. */
export const hyphenated = (name: string): string => name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)

const JSON_FORM = 'application/json'
/** The schema of a time in milliseconds. */
const TIME = '#/components/schemas/Millis'

/** Every call of the document that the command line can make: all but WebSockets. */
export const operationsOf = (document: OpenApiDocument): Operation[] =>
  Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, found]) => found['x-client-frame'] === undefined)
        .map(([method, found]) => operationOf(document, `${method.toUpperCase()} ${path}`, found)),
    )
    .sort((one, other) => (`${one.group} ${one.name}` < `${other.group} ${other.name}` ? -1 : 1))

const operationOf = (document: OpenApiDocument, call: string, found: DocumentOperation): Operation => {
  const { operationId, summary, description = '', parameters = [], requestBody, 'x-group': group } = found
  const resolve = resolverOf(document)
  const forms = Object.keys(requestBody?.content ?? {})
  const body = requestBody?.content[JSON_FORM]?.schema
  const { properties, required } = propertiesOf(resolve, body)
  return {
    group,
    call,
    summary,
    description,
    name: hyphenated(operationId.slice(operationId.indexOf('.') + 1)),
    fields: [
      ...parameters
        .filter(each => each.in === 'path' || each.in === 'query')
        .map(each =>
          fieldOf(resolve, each.name, each.schema, each.required === true, each.in === 'path', each.description),
        ),
      ...Object.entries(properties).map(([name, schema]) => fieldOf(resolve, name, schema, required.has(name), false)),
    ],
    takesBytes: forms.length > 0 && !forms.includes(JSON_FORM),
  }
}

type Resolve = (schema: Schema) => Schema

const resolverOf = ({ components: { schemas } }: OpenApiDocument): Resolve => {
  const resolve: Resolve = schema => {
    const named = schema.$ref && schemas[schema.$ref.split('/').at(-1)!]
    return named ? { ...resolve(named), ...(schema.description && { description: schema.description }) } : schema
  }
  return resolve
}

interface Properties {
  readonly properties: { readonly [name: string]: Schema }
  readonly required: ReadonlySet<string>
}

/** The properties of a body. For a union: the properties of all forms, and those that every form requires. */
const propertiesOf = (resolve: Resolve, schema: Schema | undefined): Properties => {
  if (!schema) return { properties: {}, required: new Set() }
  const { properties, required = [], oneOf, anyOf } = resolve(schema)
  const forms = (oneOf ?? anyOf ?? []).map(each => propertiesOf(resolve, each))
  if (!forms.length) return { properties: properties ?? {}, required: new Set(required) }
  return {
    properties: Object.assign({}, ...forms.map(form => form.properties)) as Properties['properties'],
    required: forms.map(form => form.required).reduce((all, each) => new Set([...all].filter(name => each.has(name)))),
  }
}

const fieldOf = (
  resolve: Resolve,
  name: string,
  schema: Schema,
  required: boolean,
  inPath: boolean,
  description?: string,
): Field => {
  const found = resolve(schema)
  const many = found.type === 'array'
  const isTime = schema.$ref === TIME || schema.items?.$ref === TIME
  const [one, nullable] = withoutNull(resolve, many && found.items ? resolve(found.items) : found)
  const choices =
    nullable && one.type === 'boolean'
      ? ['true', 'false', 'null']
      : one.enum?.filter(choice => typeof choice === 'string')
  const [help = ''] = (description ?? found.description ?? '').split('\n')
  return {
    name,
    kind: nullable && one.type === 'boolean' ? 'json' : isTime ? 'time' : kindOf(one),
    many,
    required,
    inPath,
    help,
    ...(choices?.length && { choices }),
  }
}

/** The schema of a value without null, and whether null is allowed. */
const withoutNull = (resolve: Resolve, schema: Schema): [schema: Schema, nullable: boolean] => {
  const forms = schema.oneOf ?? schema.anyOf ?? []
  const others = forms.filter(({ type }) => type !== 'null')
  return others.length === 1 && forms.length === 2 ? [resolve(others[0]!), true] : [schema, false]
}

const kindOf = ({ type, enum: choices }: Schema): FieldKind => {
  if (type === 'string' || choices?.every(choice => typeof choice === 'string')) return 'text'
  if (type === 'integer' || type === 'number') return 'number'
  return type === 'boolean' ? 'switch' : 'json'
}
