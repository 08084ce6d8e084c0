import type { Shape } from '../../../sdk/contract.js'
import { schemaOf } from '../tools/schema.js'

/** The fields of inputs that are paths of the tree. */
const PATHS: { readonly [tool: string]: readonly string[] } = {
  Read: ['path'],
  List: ['path'],
  Search: ['dir'],
  Write: ['path'],
  Append: ['path'],
  Edit: ['path'],
  Delete: ['path'],
  Move: ['from', 'to'],
  Shell: ['cwd'],
  Browser: ['paths'],
}

type Fields = NonNullable<Shape['properties']>

/** The fields of each tool's input by name: they cost time to make. */
const fields = new Map<string, Fields>()
const fieldsOf = (name: string): Fields => {
  const known = fields.get(name)
  if (known) return known
  const { properties = {} } = schemaOf(name).input
  fields.set(name, properties)
  return properties
}

/**
 * A path as the tree names it: models begin paths with `./`, and with the folder in which they see the workspace. What
 * leads out of it stays as it is, and is refused.
 */
export const pathAsMeant = (path: string, roots: readonly string[]): string => {
  const root = roots.find(each => path === each || path.startsWith(`${each}/`))
  const below = root === undefined ? path : path.slice(root.length).replace(/^\/+/, '')
  const bare = below.replace(/^(?:\.\/+)+/, '')
  return bare === '' && path !== '' ? '.' : bare
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A value in the type that a field has: models write numbers, switches and lists as text. */
const valueAsMeant = (value: unknown, { type }: Shape): unknown => {
  if (typeof value !== 'string') return value
  const text = value.trim()
  if ((type === 'integer' || type === 'number') && /^-?\d{1,15}(?:\.\d+)?$/.test(text)) return Number(text)
  if (type === 'boolean' && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  if (type !== 'array' && type !== 'object') return value
  const inner = parsed(text)
  return (type === 'array' ? Array.isArray(inner) : typeof inner === 'object') && inner ? inner : value
}

/**
 * The input of a tool as its model means it: fields without a value are left out, texts become what a field takes, and
 * paths count from the root of the workspace, which the model sees at `roots`.
 */
export const asMeant = (name: string, input: object, roots: readonly string[]): object => {
  const shape = fieldsOf(name)
  const paths = PATHS[name] ?? []
  const path = (value: unknown): unknown => (typeof value === 'string' ? pathAsMeant(value, roots) : value)
  return Object.fromEntries(
    Object.entries(input).flatMap(([field, given]) => {
      const own = shape[field]
      if (given === null && own) return []
      const value = own ? valueAsMeant(given, own) : given
      if (!paths.includes(field)) return [[field, value]]
      return [[field, Array.isArray(value) ? value.map(path) : path(value)]]
    }),
  )
}
