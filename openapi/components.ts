import { isDeepStrictEqual } from 'node:util'
import { order, pascal, reached, refTo } from './schemas.js'
import type { JsonSchema, Schemas } from './schemas.js'

/** The operations and types that one group publishes. */
export interface GroupTypes<Operation> {
  readonly group: string
  readonly operations: readonly Operation[]
  readonly schemas: Schemas
}

/** The name under which the refusals are published, which all groups share. */
export const EVERY_GROUP = 'the kernel'

/**
 * Merges the operations and named types of all groups, sorted by name. If two groups have different types with the same
 * name, each type is published with its group's name in front.
 */
export const withNames = <Operation>(
  groups: readonly GroupTypes<Operation>[],
): { readonly operations: Operation[]; readonly schemas: [name: string, schema: JsonSchema][] } => {
  for (const { group, schemas } of groups) {
    for (const [name, schema] of Object.entries(schemas)) {
      if (!schema) throw new Error(`${group}: nothing is named ${name}`)
      if (!/^[A-Z][A-Za-z0-9]*$/.test(name)) {
        throw new Error(`${group}: a call publishes the anonymous type ${name}: give it an interface of its own`)
      }
    }
  }
  const several = ambiguous(groups)
  const named = groups.map(types => withGroup(types, several))
  const taken = new Map<string, { group: string; schema: JsonSchema }>()
  for (const { group, schemas } of named) {
    for (const [name, schema] of Object.entries(schemas)) {
      const before = taken.get(name)
      if (before && !isDeepStrictEqual(before.schema, schema))
        throw new Error(`${before.group} and ${group} both publish a type ${name}, and they differ: rename one`)
      if (!before) taken.set(name, { group, schema })
    }
  }
  return {
    operations: named.flatMap(({ operations }) => operations),
    schemas: [...taken].sort(([a], [b]) => order(a, b)).map(([name, { schema }]) => [name, schema]),
  }
}

/** The names of types that differ between groups, directly or through a type that they refer to. */
const ambiguous = (groups: readonly GroupTypes<unknown>[]): ReadonlySet<string> => {
  const types = new Map<string, JsonSchema[]>()
  for (const { schemas } of groups)
    for (const [name, schema] of Object.entries(schemas)) types.set(name, [...(types.get(name) ?? []), schema])
  const differ = [...types].flatMap(([name, [first, ...rest]]) =>
    rest.some(schema => !isDeepStrictEqual(schema, first)) ? [name] : [],
  )
  const own = new Set(Object.keys(groups.find(({ group }) => group === EVERY_GROUP)?.schemas ?? {}))
  const named = new Set(differ.filter(name => !own.has(name)))
  if (named.size === 0) return named
  return new Set(
    groups.flatMap(({ schemas }) =>
      Object.keys(schemas).filter(
        name => types.get(name)!.length > 1 && [name, ...reached(schemas[name], schemas)].some(one => named.has(one)),
      ),
    ),
  )
}

/** Adds the group's name in front of each of these names. */
const withGroup = <Operation>(types: GroupTypes<Operation>, names: ReadonlySet<string>): GroupTypes<Operation> => {
  const { group, operations, schemas } = types
  const own = Object.keys(schemas).filter(name => names.has(name))
  if (own.length === 0) return types
  const long = (name: string) => pascal(group) + name
  const renamed = <Part>(part: Part): Part => {
    let text = JSON.stringify(part)
    for (const name of own) text = text.replaceAll(`"${refTo(name).$ref}"`, `"${refTo(long(name)).$ref}"`)
    return JSON.parse(text) as Part
  }
  return {
    group,
    operations: renamed(operations),
    schemas: Object.fromEntries(
      Object.entries(schemas).map(([name, schema]) => [names.has(name) ? long(name) : name, renamed(schema)]),
    ),
  }
}
