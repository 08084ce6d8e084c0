import type { oas31 } from 'openapi3-ts'

/** A JSON Schema as the document publishes it. */
export type Schema = oas31.SchemaObject

/** Named schemas of one group or of the whole document. */
export interface Schemas {
  [name: string]: Schema
}

const COMPONENTS = '#/components/schemas/'

/** The reference to a named schema. */
export const refTo = (name: string): Schema => ({ $ref: COMPONENTS + name })

/** The name of the schema a reference points to; undefined for a schema that is none. */
export const nameOf = (schema: Schema | undefined): string | undefined =>
  schema?.$ref?.startsWith(COMPONENTS) ? schema.$ref.slice(COMPONENTS.length) : undefined

/** The schema itself, however many names lead to it. */
export const resolve = (schema: Schema | undefined, schemas: Schemas): Schema | undefined => {
  const name = nameOf(schema)
  return name === undefined ? schema : resolve(schemas[name], schemas)
}

/** A schema in the shortest form that says the same: literals as one `enum` with its type, no empty lists. */
export const published = (source: Schema): Schema => {
  const { type, properties, required, oneOf, items, additionalProperties, ...rest } = source
  const literals = oneOf?.map(option => option as Schema)
  const words = literals?.every(({ const: value, ...others }) => typeof value === 'string' && Object.keys(others).length === 0)
  const kind = type ?? (words ? 'string' : literalType(rest.const))
  const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, published(field as Schema)] as const)
  return {
    ...(kind && { type: kind }),
    ...(words ? { enum: literals!.map(option => option.const) } : literals && { oneOf: literals.map(published) }),
    ...(items && { items: published(items as Schema) }),
    ...(properties && (fields.length > 0 || !additionalProperties) && { properties: Object.fromEntries(fields) }),
    ...(required?.length && { required }),
    ...(additionalProperties !== undefined && {
      additionalProperties: typeof additionalProperties === 'object' ? published(additionalProperties as Schema) : additionalProperties,
    }),
    ...rest,
  }
}

const literalType = (value: unknown): 'string' | 'number' | 'boolean' | undefined => {
  const type = typeof value
  return type === 'string' || type === 'number' || type === 'boolean' ? type : undefined
}

/** Every name a part of the document refers to, directly or through other schemas. */
export const reached = (part: unknown, schemas: Schemas, names = new Set<string>()): Set<string> => {
  if (typeof part !== 'object' || part === null) return names
  const name = typeof (part as Schema).$ref === 'string' ? nameOf(part as Schema) : undefined
  if (name !== undefined && !names.has(name)) {
    names.add(name)
    reached(schemas[name], schemas, names)
  }
  for (const value of Object.values(part)) reached(value, schemas, names)
  return names
}
