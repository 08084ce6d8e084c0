const TYPES = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'])
const MOST_DEPTH = 32

const isPlain = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The error in a JSON Schema, with its path; undefined: none found. */
export const wrongSchema = (schema: unknown, place = '', depth = 0): string | undefined => {
  if (typeof schema === 'boolean') return undefined
  if (!isPlain(schema)) return `${place || 'the schema'} is no object`
  if (depth > MOST_DEPTH) return `${place} is nested too deep`
  const { type, properties, required, items, anyOf, oneOf, allOf, additionalProperties } = schema
  const types = type === undefined ? [] : Array.isArray(type) ? type : [type]
  const unknown = types.find(each => typeof each !== 'string' || !TYPES.has(each))
  if (unknown !== undefined) return `${place || 'the schema'} has the type ${JSON.stringify(unknown)}`
  if (required !== undefined && !(Array.isArray(required) && required.every(each => typeof each === 'string')))
    return `${place || 'the schema'}: required is no list of names`
  if (properties !== undefined && !isPlain(properties)) return `${place}properties is no object`
  const inner: [string, unknown][] = [
    ...Object.entries(properties ?? {}).map(([name, each]): [string, unknown] => [`${place}${name}`, each]),
    ...(items === undefined ? [] : [[`${place}items`, items] as [string, unknown]]),
    ...(additionalProperties === undefined ? [] : [[`${place}*`, additionalProperties] as [string, unknown]]),
    ...([anyOf, oneOf, allOf].flatMap(list =>
      list === undefined
        ? []
        : Array.isArray(list)
          ? list.map((each): [string, unknown] => [place, each])
          : [[place, 0]],
    ) as [string, unknown][]),
  ]
  for (const [name, each] of inner) {
    const wrong = wrongSchema(each, name, depth + 1)
    if (wrong !== undefined) return wrong
  }
  return undefined
}
