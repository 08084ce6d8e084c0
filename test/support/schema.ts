import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A schema of the published document, with the keywords that the document uses. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly properties?: { readonly [name: string]: Schema }
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly oneOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
}

interface Content {
  readonly content?: { readonly [type: string]: { readonly schema: Schema } }
}

/** One call as the published document describes it. */
export interface Operation {
  readonly call: string
  readonly method: string
  readonly path: string
  /** The feature that the document lists it under, and the least role of a person who may use it. */
  readonly group: string
  readonly tags: readonly string[]
  readonly floor: string
  /** The scopes of control tokens that reach it. */
  readonly scopes: readonly string[]
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly schema: Schema
  }[]
  readonly body: Schema | undefined
  /** The content of each status, by media type. */
  readonly responses: { readonly [status: string]: Content }
}

interface Document {
  readonly tags: readonly { readonly name: string }[]
  readonly paths: {
    readonly [path: string]: {
      readonly [method: string]: {
        parameters?: Operation['parameters']
        requestBody?: Content
        tags?: readonly string[]
        'x-group'?: string
        'x-floor'?: string
        'x-token'?: readonly string[]
        responses: { readonly [status: string]: Content }
      }
    }
  }
  readonly components: { readonly schemas: { readonly [name: string]: Schema } }
}

const document = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../..', 'openapi', 'openapi.json'), 'utf8'),
) as Document

/** The groups under which the document lists its calls. */
export const TAGS: readonly string[] = document.tags.map(({ name }) => name)

/** Every call of the published document. */
export const OPERATIONS: readonly Operation[] = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, { parameters = [], requestBody, responses, ...listed }]) => ({
    call: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    group: listed['x-group'] ?? '',
    tags: listed.tags ?? [],
    floor: listed['x-floor'] ?? '',
    scopes: listed['x-token'] ?? [],
    parameters,
    responses,
    body: requestBody?.content?.['application/json']?.schema,
  })),
)

type Named = { readonly [name: string]: Schema }

/** The schema that a reference points to, in the published document or in `named`. */
export const resolved = (schema: Schema, named: Named = document.components.schemas): Schema =>
  schema.$ref ? resolved(named[schema.$ref.split('/').at(-1)!]!, named) : schema

const TYPES: { readonly [type: string]: (value: unknown) => boolean } = {
  object: value => typeof value === 'object' && value !== null && !Array.isArray(value),
  array: Array.isArray,
  string: value => typeof value === 'string',
  boolean: value => typeof value === 'boolean',
  number: Number.isFinite,
  integer: Number.isInteger,
  null: value => value === null,
}

/** The differences of a value from a published schema; empty: it is valid. */
export const misfits = (schema: Schema, value: unknown, at = 'answer', named?: Named): string[] => {
  const shape = resolved(schema, named)
  if (shape.oneOf) {
    const tries = shape.oneOf.map(one => misfits(one, value, at, named))
    return tries.some(found => found.length === 0) ? [] : [`${at} fits none: ${tries.flat().slice(0, 5).join('; ')}`]
  }
  if (shape.const !== undefined && value !== shape.const) return [`${at} is not ${JSON.stringify(shape.const)}`]
  if (shape.enum && !shape.enum.includes(value)) return [`${at} is none of ${shape.enum.join(', ')}`]
  if (shape.type && !TYPES[shape.type]!(value)) return [`${at} is not of type ${shape.type}`]
  if (typeof value === 'number' && (value < (shape.minimum ?? value) || value > (shape.maximum ?? value)))
    return [`${at} is out of range: ${value}`]
  if (typeof value === 'string')
    return inText(shape, value) ? [] : [`${at} is a text that does not fit: ${value.slice(0, 80)}`]
  if (Array.isArray(value)) {
    if (value.length < (shape.minItems ?? 0) || value.length > (shape.maxItems ?? Infinity))
      return [`${at} has ${value.length} items`]
    return value.flatMap((item, index) => (shape.items ? misfits(shape.items, item, `${at}[${index}]`, named) : []))
  }
  return typeof value === 'object' && value !== null
    ? inObject(shape, value as { [key: string]: unknown }, at, named)
    : []
}

const inText = ({ pattern, minLength = 0, maxLength = Infinity }: Schema, text: string): boolean =>
  text.length >= minLength && text.length <= maxLength && (pattern === undefined || new RegExp(pattern).test(text))

const inObject = (
  { properties = {}, required = [], additionalProperties = true }: Schema,
  value: { [key: string]: unknown },
  at: string,
  named?: Named,
): string[] => [
  ...required.filter(name => !Object.hasOwn(value, name)).map(name => `${at}.${name} is missing`),
  ...Object.entries(value).flatMap(([name, inner]) => {
    const schema = Object.hasOwn(properties, name) ? properties[name]! : additionalProperties
    return schema === true
      ? []
      : schema === false
        ? [`${at}.${name} is not published`]
        : misfits(schema, inner, `${at}.${name}`, named)
  }),
]
