import type { oas31 } from 'openapi3-ts'

/** A JSON Schema as the document publishes it. */
export type JsonSchema = oas31.SchemaObject

/** Named schemas of one group or of the whole document. */
export interface Schemas {
  [name: string]: JsonSchema
}

const COMPONENTS = '#/components/schemas/'

/** The reference to a named schema. */
export const refTo = (name: string): JsonSchema => ({ $ref: COMPONENTS + name })

/** Converts to PascalCase: `not-found` → `NotFound`, `agent.attach` → `AgentAttach`. */
export const pascal = (words: string): string =>
  words.replace(/(?:^|[-.])(.)/g, (_, letter: string) => letter.toUpperCase())

/** The name of the schema that a reference points to; undefined for other schemas. */
export const nameOfSchema = (schema: JsonSchema | undefined): string | undefined =>
  schema?.$ref?.startsWith(COMPONENTS) ? schema.$ref.slice(COMPONENTS.length) : undefined

/** Resolves a schema through any number of references. */
export const resolve = (schema: JsonSchema | undefined, schemas: Schemas): JsonSchema | undefined => {
  const name = nameOfSchema(schema)
  return name === undefined ? schema : resolve(schemas[name], schemas)
}

/** Compares by UTF-16 code units, so that the order is the same on every machine. */
export const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * The shortest equivalent schema: literals as one `enum` with its type, no empty lists.
 *
 * Sorts the members of unions, since the compiler's order depends on other files.
 */
export const published = (source: JsonSchema): JsonSchema => {
  const { type, properties, required, oneOf, items, additionalProperties: rest, discriminator, ...others } = source
  const literals = oneOf?.map(option => option as JsonSchema)
  const words = literals?.every(option => typeof option.const === 'string' && Object.keys(option).length === 1)
  const kind = type ?? (words ? 'string' : literalType(others.const))
  const fields = Object.entries(properties ?? {}).map(
    ([name, field]) => [name, published(field as JsonSchema)] as const,
  )
  return {
    ...(kind && { type: kind }),
    ...(words
      ? { enum: literals!.map(option => String(option.const)).sort(order) }
      : literals && { oneOf: sorted(literals) }),
    ...(discriminator && { discriminator: { ...discriminator, mapping: byName(discriminator.mapping ?? {}) } }),
    ...(items && { items: published(items as JsonSchema) }),
    ...(properties && (fields.length > 0 || !rest) && { properties: Object.fromEntries(fields) }),
    ...(required?.length && { required }),
    ...(rest !== undefined && {
      additionalProperties: typeof rest === 'object' ? published(rest as JsonSchema) : rest,
    }),
    ...others,
  }
}

const sorted = (forms: readonly JsonSchema[]): JsonSchema[] =>
  forms
    .map(form => ({ form: published(form), text: JSON.stringify(published(form)) }))
    .sort((a, b) => order(a.text, b.text))
    .map(({ form }) => form)

/** The entries sorted by name. */
export const byName = <T>(entries: { readonly [name: string]: T }): { [name: string]: T } =>
  Object.fromEntries(Object.entries(entries).sort(([a], [b]) => order(a, b)))

const literalType = (value: unknown): 'string' | 'number' | 'boolean' | undefined => {
  const type = typeof value
  return type === 'string' || type === 'number' || type === 'boolean' ? type : undefined
}

/** All names that a part of the document refers to, directly or through other schemas. */
export const reached = (part: unknown, schemas: Schemas, names = new Set<string>()): Set<string> => {
  if (typeof part !== 'object' || part === null) return names
  const name = typeof (part as JsonSchema).$ref === 'string' ? nameOfSchema(part as JsonSchema) : undefined
  if (name !== undefined && !names.has(name)) {
    names.add(name)
    reached(schemas[name], schemas, names)
  }
  for (const value of Object.values(part)) reached(value, schemas, names)
  return names
}
