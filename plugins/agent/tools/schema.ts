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
  return { name, description: description.replaceAll('\n', ' '), input }
}

/** A limit of so many characters is not met by accident. */
const LARGE = 40

/** Whether a rule goes without saying: who breaks it is told so in words. */
const isPlain = ([rule, value]: readonly [string, unknown]): boolean => {
  if (rule === 'maxItems' || rule === 'pattern') return true
  if (rule === 'minLength' || rule === 'minItems') return Number(value) <= 1
  if (rule === 'maxLength') return Number(value) >= LARGE
  if (rule === 'minimum') return Number(value) <= 1
  if (rule === 'maximum') return Number(value) >= LARGE
  return rule === 'required' && Array.isArray(value) && value.length === 0
}

/** The same schema without references; tools have no types that contain themselves. */
const shortened = (shape: Shape, schemas: { readonly [name: string]: Shape }): Shape => {
  const { $ref, properties = {}, items, oneOf, description, ...rules } = shape
  const own = {
    ...Object.fromEntries(Object.entries(rules).filter(rule => !isPlain(rule))),
    ...(description !== undefined && { description: description.replaceAll('\n', ' ') }),
  }
  if ($ref !== undefined) return { ...shortened(schemas[$ref.slice(COMPONENTS.length)]!, schemas), ...own }
  const choices = oneOf?.map(one => one.const)
  const fields = Object.entries(properties).map(([field, inner]) => [field, shortened(inner, schemas)] as const)
  return {
    ...own,
    ...(fields.length > 0 && { properties: Object.fromEntries(fields) }),
    ...(items && { items: itemOf(shortened(items, schemas)) }),
    ...(choices?.every(choice => typeof choice === 'string')
      ? { type: 'string', enum: choices }
      : oneOf && { oneOf: oneOf.map(one => shortened(one, schemas)) }),
  }
}

/** The schema of one item of a list, which the list describes. */
const itemOf = ({ description: _ofOne, ...item }: Shape): Shape => item
