import type { oas31 } from 'openapi3-ts'
import { OPEN_TAG } from './kernel.js'
import { byName, order, reached } from './schemas.js'
import type { JsonSchema, Schemas } from './schemas.js'

/** The part for everything that is not of a single group. */
export const SHARED = 'shared'

const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const
type Document = oas31.OpenAPIObject
type Item = { readonly [method: string]: oas31.OperationObject }

/** Splits the document by group: the part that only one group publishes, and the rest under `shared`. */
export const partsOf = (document: Document): { readonly [group: string]: Partial<Document> } => {
  const schemas = document.components!.schemas as Schemas
  const paths = new Map<string, { [path: string]: Item }>()
  for (const [path, item] of Object.entries(document.paths as { [path: string]: Item })) {
    for (const [method, operation] of Object.entries(item)) {
      const group = operation['x-group'] as string
      const own = paths.get(group) ?? {}
      paths.set(group, { ...own, [path]: { ...own[path], [method]: operation } })
    }
  }
  const users = new Map<string, string[]>()
  const tagged = new Map<string, string[]>()
  const noted = (map: Map<string, string[]>, name: string, group: string) =>
    map.set(name, [...new Set([...(map.get(name) ?? []), group])])
  for (const [group, own] of paths) {
    for (const name of reached(own, schemas)) noted(users, name, group)
    for (const { tags } of Object.values(own).flatMap(item => Object.values(item)))
      for (const tag of tags!) if (tag !== OPEN_TAG.name) noted(tagged, tag, group)
  }
  for (const name of reached(document.components!.responses, schemas)) users.set(name, [])
  const ownerOf = (groups: readonly string[] = []) => (groups.length === 1 ? groups[0]! : SHARED)
  const ofGroup = (group: string) => ({
    tags: document.tags!.filter(({ name }) => ownerOf(tagged.get(name)) === group),
    schemas: Object.fromEntries(Object.entries(schemas).filter(([name]) => ownerOf(users.get(name)) === group)),
  })
  const shared = ofGroup(SHARED)
  return byName({
    ...Object.fromEntries(
      [...paths].map(([group, own]) => {
        const { tags, schemas } = ofGroup(group)
        return [group, { tags, paths: own, components: { schemas } }]
      }),
    ),
    [SHARED]: {
      ...document,
      tags: shared.tags,
      paths: {},
      components: { ...document.components, schemas: shared.schemas },
    },
  })
}

/** Assembles the document from its parts. */
export const assembled = (parts: { readonly [group: string]: Partial<Document> }): Document => {
  const { [SHARED]: shared, ...groups } = byName(parts)
  const paths = new Map<string, Item>()
  const schemas: { [name: string]: JsonSchema } = { ...(shared!.components!.schemas as Schemas) }
  for (const part of Object.values(groups)) {
    Object.assign(schemas, part.components!.schemas)
    for (const [path, item] of Object.entries(part.paths as { [path: string]: Item }))
      paths.set(path, { ...paths.get(path), ...item })
  }
  const inOrder = (item: Item): Item =>
    Object.fromEntries(METHODS.flatMap(method => (item[method] ? [[method, item[method]]] : [])))
  return {
    ...(shared as Document),
    tags: [...Object.values(groups).flatMap(({ tags }) => tags!), ...shared!.tags!],
    paths: Object.fromEntries([...paths].sort(([a], [b]) => order(a, b)).map(([path, item]) => [path, inOrder(item)])),
    components: { ...shared!.components, schemas: byName(schemas) },
  }
}
