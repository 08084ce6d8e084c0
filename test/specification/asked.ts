import type { Field } from './fields.js'
import type { ShownCall } from './tables.js'

/** A request of a call, its input by the places where it travels. */
export interface Asked {
  readonly call: string
  readonly path: { [name: string]: unknown }
  readonly query: { [name: string]: unknown }
  readonly body: { [name: string]: unknown }
}

type Values = { [name: string]: unknown }

const valueOf = ({ type = 'string', values }: Field): unknown => {
  // The last: of kinds the one that has more fields.
  const one = values?.at(-1) ?? 'abc'
  if (type.endsWith('[]')) return type === 'object[]' ? [] : [one]
  if (type === 'number' || type === 'integer') return 1
  if (type === 'boolean') return true
  return type === 'object' ? {} : one
}

/** What no field of the type takes; undefined: the field takes any text. */
const wrongValueOf = ({ type = 'string', values }: Field): unknown =>
  values || type !== 'string' ? 'nope{' : { not: 'text' }

const parentOf = (path: string): string => path.replace(/(?:\[\])?\.[^.]*$|^[^.]*$/, '')

/** Puts a value at a path, with what must stand around it. */
const put = (into: Values, path: string, value: unknown): void => {
  const [first = '', ...rest] = path.split('.')
  const name = first.replace('[]', '')
  if (rest.length === 0) into[name] = value
  else {
    const isList = first.endsWith('[]')
    const present = into[name] as Values | Values[] | undefined
    const inner = ((isList ? (present as Values[] | undefined)?.[0] : present) ?? {}) as Values
    put(inner, rest.join('.'), value)
    into[name] = isList ? [inner] : inner
  }
}

/** A request with the required fields of a call, and one field with a value of its own or without it. */
const requestWith = (shown: ShownCall, changed: Field, value: unknown): Asked => {
  const asked: Asked = { call: shown.call, path: {}, query: {}, body: {} }
  const isOf = (field: Field) => field.kind === changed.kind || field.kind === undefined
  const around = (field: Field) => {
    const parent = parentOf(field.path)
    return parent === '' || changed.path === field.path || parentOf(changed.path) === parent
  }
  if (changed.kind !== undefined) asked.body['kind'] = changed.kind
  const parent = parentOf(changed.path)
  if (parent !== '') put(asked[changed.in ?? 'body'], parent, {})
  for (const field of shown.input.filter(isOf).filter(around)) {
    const isChanged = field.path === changed.path
    const given = isChanged ? value : field.required ? valueOf(field) : undefined
    if (given !== undefined) put(asked[field.in ?? 'body'], field.path, given)
  }
  return asked
}

/** Requests of a call that its table does not allow, each with the field at fault. */
export const refusedBy = (shown: ShownCall): readonly { asked: Asked; field: string; why: string }[] =>
  shown.input
    .filter(({ path, in: place }) => path !== '' && place !== 'path')
    .flatMap(field => {
      const name = field.path.split('.').at(-1)!.replace('[]', '')
      const isText = !field.values && (field.type ?? 'string') === 'string'
      // A query holds texts, and an object that is required may be the only one there.
      const wrong =
        field.in === 'query' && isText
          ? []
          : [{ asked: requestWith(shown, field, wrongValueOf(field)), field: name, why: `${field.path} is wrong` }]
      const lacks = field.required
        ? [{ asked: requestWith(shown, field, undefined), field: name, why: `${field.path} is missing` }]
        : []
      return [...wrong, ...lacks]
    })

/** The address of a request, with its path and query. */
export const targetOf = ({ call, path, query }: Asked): string => {
  const [, route = ''] = call.split(' ')
  const filled = route.replace(/\{(\w+)\}/g, (_, name: string) =>
    name === 'vendor_a' ? 'acme' : encodeURIComponent(String(path[name] ?? 'abc')),
  )
  const asked = new URLSearchParams(
    Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)])),
  )
  return asked.size > 0 ? `${filled}?${asked}` : filled
}
