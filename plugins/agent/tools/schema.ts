import type { Shape } from '../../../sdk/contract.js'
import { toolInputs } from './contract.js'

/** The JSON Schema (draft 2020-12) of a tool's input, with the schemas it refers to. */
export interface InputSchema extends Shape {
  readonly $defs?: { readonly [name: string]: Shape }
}

/** The description of a tool for a model. */
export interface ToolSchema {
  readonly name: string
  readonly description: string
  readonly input: InputSchema
}

const COMPONENTS = '#/components/schemas/'

/** The description of the tool with a name. */
export const schemaOf = (name: string): ToolSchema => {
  const { components, functions } = toolInputs.schema()
  const { description = '', parameters } = functions.find(call => call.name === name)!
  const { schemas = {} } = components
  const shared = new Set<string>()
  const input = resolved(parameters[0]!.schema, schemas)
  for (const reference of referencesIn(input)) shared.add(reference)
  for (const reference of shared) for (const next of referencesIn(schemas[reference])) shared.add(next)
  const text = JSON.stringify({
    ...input,
    ...(shared.size > 0 && {
      $defs: Object.fromEntries([...shared].map(reference => [reference, schemas[reference]])),
    }),
  })
  return { name, description, input: JSON.parse(text.replaceAll(`"${COMPONENTS}`, '"#/$defs/')) as InputSchema }
}

const resolved = (schema: Shape, schemas: { readonly [name: string]: Shape }): Shape =>
  schema.$ref === undefined ? schema : resolved(schemas[schema.$ref.slice(COMPONENTS.length)]!, schemas)

const referencesIn = (value: unknown): string[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([key, inner]) =>
        key === '$ref' && typeof inner === 'string' ? [inner.slice(COMPONENTS.length)] : referencesIn(inner),
      )
