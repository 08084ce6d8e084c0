import type { Shape } from '../../../sdk/contract.js'
import { toolInputs } from './contract.js'

/** The description of a tool for a model. */
export interface ToolSchema {
  readonly name: string
  readonly description: string
  /** The JSON Schema (draft 2020-12) of its input. */
  readonly input: Shape
}

const COMPONENTS = '#/components/schemas/'

/**
 * The description of the tool with a name. Every request carries it, so it says things once: types stand where they are
 * used, and choices are one list.
 */
export const schemaOf = (name: string): ToolSchema => {
  const { components, functions } = toolInputs.schema()
  const { description = '', parameters } = functions.find(call => call.name === name)!
  const { description: _ofTheType, ...input } = shortened(parameters[0]!.schema, components.schemas ?? {})
  return { name, description, input }
}

type Schema = Shape & { readonly minLength?: number }

/** The same schema without references; tools have no types that contain themselves. */
const shortened = (shape: Schema, schemas: { readonly [name: string]: Shape }): Shape => {
  const { $ref, minLength, properties, items, oneOf, ...own } = shape
  if ($ref !== undefined) return { ...shortened(schemas[$ref.slice(COMPONENTS.length)]!, schemas), ...own }
  const choices = oneOf?.map(one => one.const)
  return {
    ...own,
    // That a text has a character goes without saying; what has none is refused in words.
    ...(minLength !== undefined && minLength > 1 && { minLength }),
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([field, inner]) => [field, shortened(inner, schemas)]),
      ),
    }),
    ...(items && { items: shortened(items, schemas) }),
    ...(choices?.every(choice => typeof choice === 'string')
      ? { type: 'string', enum: choices }
      : oneOf && { oneOf: oneOf.map(one => shortened(one, schemas)) }),
  }
}
